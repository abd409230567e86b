// Operands, the run, the choice of elements and the comparison.
#include "bench/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "bench/evaluate.h"
#include "bench/random.h"
#include "models/error.h"

namespace kbench {
namespace {

using reference::Element;
using reference::Expected;
using reference::View;

/// Multiply-adds of the reference that one step may cost: about 0.3 s on two cores.
constexpr double reference_budget = 1e8;
constexpr std::size_t sampled_elements = 4096;

/// Work of the reference for one element, and whether elements of a row (within `group` columns) share it.
struct ElementCost {
    double multiply_adds;
    std::int64_t group = 1;
};

ElementCost element_cost(const StepKind& kind) {
    if (const auto* gemm = std::get_if<GemmStep>(&kind)) return {static_cast<double>(gemm->gemm.k)};
    if (const auto* norm = std::get_if<NormStep>(&kind)) return {4.0, norm->norm.width};
    if (const auto* softmax = std::get_if<Softmax>(&kind)) return {4.0, softmax->width};
    if (const auto* a = std::get_if<Attention>(&kind))
        return {2.0 * static_cast<double>(a->shape.seq), a->shape.head_size};
    if (const auto* a = std::get_if<AttentionScores>(&kind)) return {static_cast<double>(a->shape.head_size)};
    if (const auto* a = std::get_if<AttentionContext>(&kind)) return {static_cast<double>(a->shape.seq)};
    return {1.0};
}

/// All elements where that is cheap; otherwise at least 4096, in whole groups where a group shares its work.
std::vector<Element> choose_elements(const StepKind& kind, const Operand& out, std::uint64_t seed) {
    const ElementCost cost = element_cost(kind);
    std::vector<Element> elements;
    const std::int64_t total = out.rows * out.columns;
    if (static_cast<double>(total) * cost.multiply_adds <= reference_budget && total <= (std::int64_t{1} << 21)) {
        elements.reserve(static_cast<std::size_t>(total));
        for (std::int64_t r = 0; r < out.rows; ++r)
            for (std::int64_t c = 0; c < out.columns; ++c) elements.push_back({r, c});
        return elements;
    }
    const std::int64_t groups_in_row = out.columns / cost.group;
    const std::size_t wanted =
        (sampled_elements + static_cast<std::size_t>(cost.group) - 1) / static_cast<std::size_t>(cost.group);
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> any(0, out.rows * groups_in_row - 1);
    // The corners first: tiles at the edges are where kernels go wrong.
    std::set<std::int64_t> groups{0, groups_in_row - 1, (out.rows - 1) * groups_in_row, out.rows * groups_in_row - 1};
    while (groups.size() < std::min<std::size_t>(wanted + 4, static_cast<std::size_t>(out.rows * groups_in_row)))
        groups.insert(any(random));
    for (const std::int64_t g : groups)
        for (std::int64_t c = 0; c < cost.group; ++c)
            elements.push_back({g / groups_in_row, g % groups_in_row * cost.group + c});
    return elements;
}

/// Where an operand's columns mean more than a number: row i of scores has -inf right of i in masked scores.
void mask_scores(std::byte* data, const Operand& operand, std::int64_t seq) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t r = 0; r < operand.rows; ++r)
        for (std::int64_t c = r % seq + 1; c < operand.columns; ++c) {
            std::byte* at = data + (r * operand.stride + c) * static_cast<std::int64_t>(size_of(operand.type));
            switch (operand.type) {
                case DataType::fp16: {
                    const std::uint16_t bits = 0xfc00;
                    std::memcpy(at, &bits, sizeof bits);
                    break;
                }
                case DataType::bf16: {
                    const std::uint16_t bits = 0xff80;
                    std::memcpy(at, &bits, sizeof bits);
                    break;
                }
                case DataType::fp32: {
                    const auto value = static_cast<float>(-infinity);
                    std::memcpy(at, &value, sizeof value);
                    break;
                }
                case DataType::fp64: {
                    const double value = -infinity;
                    std::memcpy(at, &value, sizeof value);
                    break;
                }
                case DataType::int32: break;
            }
        }
}

/// Seeded random contents: N(0, 1) for activations, weights of the size that keeps sums near 1, tokens in range.
std::vector<std::byte> operand_contents(const StepKind& kind, const Operand& operand, std::uint64_t seed) {
    std::vector<std::byte> data(static_cast<std::size_t>(operand.bytes()));
    if (operand.use == OperandUse::output) return data;
    if (operand.type == DataType::int32) {
        const auto& embedding = std::get<Embedding>(kind);
        fill_tokens(seed, embedding.vocab, static_cast<std::int64_t>(operand.rows * operand.columns),
                    reinterpret_cast<std::int32_t*>(data.data()));
        return data;
    }
    double deviation = 1.0;
    if (operand.use == OperandUse::weight && operand.rows > 1 && std::holds_alternative<GemmStep>(kind))
        deviation = 1.0 / std::sqrt(static_cast<double>(std::get<GemmStep>(kind).gemm.k));
    fill_normal(seed, operand.name, deviation, operand.type, data.data(), operand.rows * operand.stride);
    if (const auto* softmax = std::get_if<Softmax>(&kind)) mask_scores(data.data(), operand, softmax->width);
    return data;
}

View view_of(const Operand& operand, const std::vector<std::byte>& data) {
    return {data.data(), operand.type, operand.rows, operand.columns, operand.stride};
}

}  // namespace

/// The reference's bound, with a further rounding for each time that the result is stored on its way.
static double allowed_error(const Expected& expected, Precision precision, DataType stored, int roundings) {
    const double bound = reference::error_bound(expected, precision, stored);
    if (!std::isfinite(expected.value)) return bound;  // to be met exactly
    return bound + (roundings - 1) * unit_roundoff(stored) * std::abs(expected.value);
}

VerifiedStep verify_step(const VerifyTarget& target, Precision precision, Backend& backend, std::uint64_t seed) {
    const StepKind& kind = *target.kind;
    const Computation& computation = *target.computation;
    const std::vector<Operand> list = operands(kind, precision);

    std::vector<std::vector<std::byte>> host;
    std::vector<View> views;
    std::vector<DeviceBuffer> memory;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < list.size(); ++i) {
        host.push_back(operand_contents(kind, list[i], seed + i));
        views.push_back(view_of(list[i], host.back()));
        if (const auto packed = computation.packed_bytes(i)) {
            memory.emplace_back(backend, *packed);
            computation.pack(i, host.back().data(), memory.back().data());
        } else {
            memory.emplace_back(backend, host.back().size());
            // Outputs start as NaN in every floating-point format, so that what is not written shows.
            if (list[i].use == OperandUse::output)
                backend.fill_bytes(memory.back().data(), 0xff, host.back().size());
            else
                backend.upload(memory.back().data(), host.back().data(), host.back().size());
        }
        pointers.push_back(memory.back().data());
    }
    DeviceBuffer workspace(backend, computation.workspace_bytes());
    computation.run(pointers, workspace.data(), backend.stream());
    backend.synchronize();

    VerifiedStep verified{std::string(op_name(kind)), shape_text(kind), target.provider, computation.implementation()};
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Operand& out = list[i];
        if (out.use != OperandUse::output && out.use != OperandUse::in_place) continue;
        std::vector<std::byte> result(host[i].size());
        backend.download(result.data(), memory[i].data(), result.size());
        const View got = view_of(out, result);
        const auto fail = [&](Element e, double value, double right, double bound) {
            throw MeasurementError(fmt::format(
                "verification failed: {} {} of {} by {} ({}), {}: {}[{}, {}] is {:.9g}, the reference says {:.9g}, "
                "allowed error {:.3g}",
                verified.op, verified.shape, target.layer, target.provider, verified.implementation, name(precision),
                out.name, e.row, e.column, value, right, bound));
        };
        const std::vector<Element> elements = choose_elements(kind, out, seed);
        const std::vector<Expected> expected = evaluate(kind, i, views, elements);
        for (std::size_t e = 0; e < elements.size(); ++e) {
            const double value = got(elements[e].row, elements[e].column);
            const double bound = allowed_error(expected[e], precision, out.type, computation.roundings());
            const double error = value == expected[e].value ? 0 : std::abs(value - expected[e].value);
            if (!(error <= bound)) fail(elements[e], value, expected[e].value, bound);
            const double ratio = bound > 0 ? error / bound : 0;
            if (ratio > verified.error_over_bound) {
                verified.error_over_bound = ratio;
                verified.worst_error = error;
                verified.bound_there = bound;
            }
        }
        verified.elements_checked += static_cast<std::int64_t>(elements.size());
        verified.elements_total += out.rows * out.columns;
        std::int64_t unwritten = -1;
#pragma omp parallel for schedule(static)
        for (std::int64_t r = 0; r < out.rows; ++r)
            for (std::int64_t c = 0; c < out.columns; ++c)
                if (std::isnan(got(r, c))) {
#pragma omp atomic write
                    unwritten = r * out.columns + c;
                }
        if (unwritten >= 0)
            throw MeasurementError(fmt::format(
                "verification failed: {} {} of {} by {} ({}), {}: {}[{}, {}] was not written, or is not a number",
                verified.op, verified.shape, target.layer, target.provider, verified.implementation, name(precision),
                out.name, unwritten / out.columns, unwritten % out.columns));
    }
    return verified;
}

}  // namespace kbench
