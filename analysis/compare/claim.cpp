// Floors of a model on a machine of a datasheet.
#include "analysis/compare/claim.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analysis/machine/ceilings.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

/// The unit for products in `precision`, or what stands for it: a narrower format is computed as fp32 where it has no
/// unit, and fp64 is never faster than fp32.
std::optional<Roof> matrix_roof(const Roofs& roofs, Precision precision, std::string& remark) {
    if (std::optional<Roof> own = roofs.matrix(precision)) return own;
    const std::optional<Roof> fp32 = roofs.matrix(Precision::fp32);
    if (fp32) remark = fmt::format("no {} unit is stated: at most as fast as {}", name(precision), fp32->ceiling);
    return fp32;
}

}  // namespace

Claim check_claim(const Model& model, const MachineFile& machine, double latency_s) {
    if (!(latency_s > 0) || !std::isfinite(latency_s)) throw UsageError("--latency: must be a time above 0");
    const Roofs roofs(machine);
    const std::optional<Roof> dram = roofs.bandwidth(Level::dram);
    if (!dram) throw UsageError(fmt::format("{} states no bandwidth of its memory", machine.id));

    Claim claim{model.name, machine.name, latency_s, 0, dram->per_s, {}};
    double matrix_flops = 0;
    for (const OpNode& node : model.ops) {
        const double flops = node.op.work(node.direction).flops;
        claim.flops += flops;
        if (node.op.kind().unit(node.direction) == RoofUnit::matrix) matrix_flops += flops;
    }
    for (const Precision precision : all_precisions) {
        ClaimFloor floor;
        floor.precision = precision;
        const std::optional<Roof> matrix = matrix_roof(roofs, precision, floor.remark);
        if (!matrix) throw UsageError(fmt::format("{} states no FLOP/s for {}", machine.id, name(precision)));
        const Roof plain = roofs.plain(precision).value_or(*matrix);
        const bool is_one_unit = plain.ceiling == matrix->ceiling;
        const double matrix_s = (is_one_unit ? claim.flops : matrix_flops) / matrix->per_s;
        const double plain_s = is_one_unit ? 0 : (claim.flops - matrix_flops) / plain.per_s;
        const Roof& longest = matrix_s >= plain_s ? *matrix : plain;
        floor.flops_s = std::max(matrix_s, plain_s);
        floor.ceiling = longest.ceiling;
        floor.peak_flop_per_s = longest.per_s;
        floor.compulsory_bytes = compulsory_bytes(model, precision);
        floor.bytes_s = floor.compulsory_bytes / dram->per_s;
        claim.floors.push_back(std::move(floor));
    }
    return claim;
}

}  // namespace kbench
