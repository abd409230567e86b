// The rows of the reference, one per op kind.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cpu/reference/reference.h"

namespace kbench::reference {
namespace {

template <OpStruct T>
Row row() {
    return {&op_kind<T>(), [](const Question& question) { return expected(question.step.as<T>(), question); },
            [](const Op& op, Direction direction) {
                if constexpr (requires(const T& t) { cost(t, direction); })
                    return cost(*op.get_if<T>(), direction);
                else
                    return cost(*op.get_if<T>());
            }};
}

template <OpStruct... T>
std::vector<Row> rows_of(OpList<T...>) {
    return {row<T>()...};
}

std::vector<Row>& all_rows() {
    static std::vector<Row> rows = rows_of(BuiltInOps());
    return rows;
}

}  // namespace

const Row& row_of(const OpKind& kind) {
    const auto found = std::ranges::find(all_rows(), &kind, &Row::kind);
    if (found == all_rows().end()) throw std::logic_error(fmt::format("op kind {} has no reference", kind.name));
    return *found;
}

void add_row(Row row) { all_rows().push_back(std::move(row)); }

std::vector<Expected> evaluate(const Step& step, std::size_t output, std::span<const View> views,
                               std::span<const Element> elements) {
    return row_of(step.head_op().kind()).expected(Question(step, output, views, elements));
}

}  // namespace kbench::reference
