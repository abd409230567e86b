#include "tests/peers/recurrent_layer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "bench/plan/data/convert.h"
#include "bench/plan/data/random.h"
#include "cpu/reference/reference.h"

namespace kbench::cudnn {
namespace {

/// fp64, row-major.
struct Matrix {
    std::int64_t rows, columns;
    std::vector<double> values;

    Matrix(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
    explicit Matrix(const HostMatrix& m) : rows(m.rows), columns(m.columns), values(m.wide()) {}
    double& operator()(std::int64_t row, std::int64_t column) {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
    double operator()(std::int64_t row, std::int64_t column) const {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
    /// Only some columns.
    Matrix part(std::int64_t first, std::int64_t count) const {
        Matrix found(rows, count);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < count; ++c) found(r, c) = (*this)(r, first + c);
        return found;
    }
    Matrix transposed() const {
        Matrix turned(columns, rows);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < columns; ++c) turned(c, r) = (*this)(r, c);
        return turned;
    }
};

void add_product(Matrix& sum, const Matrix& a, const Matrix& b) {
    for (std::int64_t r = 0; r < sum.rows; ++r)
        for (std::int64_t k = 0; k < a.columns; ++k)
            for (std::int64_t c = 0; c < sum.columns; ++c) sum(r, c) += a(r, k) * b(k, c);
}
Matrix product(const Matrix& a, const Matrix& b) {
    Matrix made(a.rows, b.columns);
    add_product(made, a, b);
    return made;
}

using Values = std::map<std::string, Matrix>;  ///< by operand

/// Adds what the step makes of the others.
void compute(const Step& step, Values& values) {
    const std::vector<Operand> list = operands(step, Precision::fp64);
    std::vector<reference::View> views;
    for (const Operand& operand : list) {
        const auto found = values.find(operand.name);
        if (operand.use == OperandUse::output || found == values.end())
            views.push_back({});
        else
            views.push_back(
                {found->second.values.data(), DataType::fp64, operand.rows, operand.columns, found->second.columns});
    }
    for (std::size_t output = 0; output < list.size(); ++output) {
        if (list[output].use != OperandUse::output) continue;
        Matrix made(list[output].rows, list[output].columns);
        std::vector<reference::Element> elements;
        for (std::int64_t r = 0; r < made.rows; ++r)
            for (std::int64_t c = 0; c < made.columns; ++c) elements.push_back({r, c});
        const auto expected = reference::evaluate(step, output, views, elements);
        std::ranges::transform(expected, made.values.begin(), &reference::Expected::value);
        values.insert_or_assign(list[output].name, std::move(made));
    }
}

/// That leaves what its backward reads.
Op op_of(const RecurrentProblem& p) {
    const RecurrentShape shape{p.steps, p.batch, p.hidden};
    switch (p.cell) {
        case Cell::lstm: return Lstm{shape, true};
        case Cell::gru: return Gru{shape, true};
        default: return Rnn{shape, true};
    }
}

const std::string suffixes[] = {"", "_reverse"};  ///< behind operands' names

}  // namespace

HostMatrix::HostMatrix(DataType stored, std::int64_t r, std::int64_t c, double deviation, const std::string& name)
    : type(stored), rows(r), columns(c), data(static_cast<std::size_t>(r * c) * size_of(stored)) {
    fill_normal(1, name, deviation, type, data.data(), rows * columns);
}

std::vector<double> HostMatrix::wide() const {
    std::vector<double> values(static_cast<std::size_t>(rows * columns));
    convert(type, data.data(), DataType::fp64, values.data(), rows * columns);
    return values;
}

double largest_error(const Parts& a, const Parts& b) {
    double largest = 0;
    for (std::size_t part = 0; part < b.size(); ++part) {
        double difference = 0, size = 0;
        for (std::size_t i = 0; i < b[part].size(); ++i) {
            difference += (a[part][i] - b[part][i]) * (a[part][i] - b[part][i]);
            size += b[part][i] * b[part][i];
        }
        const double error = std::sqrt(difference / size);
        largest = std::max(largest, std::isfinite(error) ? error : std::numeric_limits<double>::infinity());
    }
    return largest;
}

RecurrentLayer::RecurrentLayer(const RecurrentProblem& of)
    : problem(of), x(storage_type(of.precision), 2 * of.steps * of.batch, of.input, 1, "x") {
    const std::int64_t width = gates_of(of.cell) * of.hidden;
    const double initial = 1 / std::sqrt(3 * static_cast<double>(of.hidden));  // as the op has them
    for (const std::string& suffix : suffixes)
        weights.push_back({HostMatrix(x.type, width, of.input, 0.3, "weight_ih" + suffix),
                           HostMatrix(x.type, width, of.hidden, initial, "weight_hh" + suffix),
                           HostMatrix(x.type, 1, width, initial, "bias_ih" + suffix),
                           HostMatrix(x.type, 1, width, initial, "bias_hh" + suffix)});
}

HostMatrix RecurrentLayer::dy() const {
    return {x.type, 2 * problem.steps * problem.batch, 2 * problem.hidden, 1, "dy"};
}

Parts RecurrentLayer::reference(Direction direction) const {
    const std::int64_t rows = problem.steps * problem.batch, hidden = problem.hidden;
    const Op op = op_of(problem);
    const Matrix wide_x(x);
    Matrix used_x(rows, problem.input), lengths(problem.batch, 1);
    std::copy_n(wide_x.values.begin(), used_x.values.size(), used_x.values.begin());
    std::ranges::fill(lengths.values, static_cast<double>(problem.steps));
    Values values{{"lengths", lengths}};
    for (std::size_t d = 0; d < std::size(suffixes); ++d) {
        const std::string& suffix = suffixes[d];
        values.insert({"gates_x" + suffix, product(used_x, Matrix(weights[d].ih).transposed())});
        values.insert({"weight_hh" + suffix, Matrix(weights[d].hh)});
        values.insert({"bias_ih" + suffix, Matrix(weights[d].bias_ih)});
        values.insert({"bias_hh" + suffix, Matrix(weights[d].bias_hh)});
    }
    compute(Step::of(op), values);
    if (direction == Direction::fwd) {
        Matrix h(rows, 2 * hidden);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t c = 0; c < 2 * hidden; ++c)
                h(r, c) = values.at("out" + suffixes[c / hidden])(r, c % hidden);
        return {h.values};
    }
    const Matrix wide_dy(dy());
    for (std::size_t d = 0; d < std::size(suffixes); ++d)
        values.insert({"dout" + suffixes[d], wide_dy.part(static_cast<std::int64_t>(d) * hidden, hidden)});
    compute(Step::of(op, Direction::bwd), values);
    if (direction == Direction::bwd) {
        Matrix dx(rows, problem.input);
        for (std::size_t d = 0; d < std::size(suffixes); ++d)
            add_product(dx, values.at("dgates_x" + suffixes[d]), Matrix(weights[d].ih));
        return {dx.values};
    }
    compute(Step::of(op, Direction::wgrad), values);
    Parts parts;
    for (const std::string& suffix : suffixes) {
        parts.push_back(product(values.at("dgates_x" + suffix).transposed(), used_x).values);
        for (const char* name : {"dweight_hh", "dbias_ih", "dbias_hh"})
            parts.push_back(values.at(name + suffix).values);
    }
    return parts;
}

}  // namespace kbench::cudnn
