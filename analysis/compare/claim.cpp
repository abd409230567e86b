// Floors of a model on a machine of a datasheet.
#include "analysis/compare/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/machine/ceilings.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

/// A bottleneck takes at least this much of the time.
constexpr double bottleneck_share = 0.5;
constexpr double shortest_s = 1e-9, longest_s = 1e9;

/// The unit for products in `precision`, or what stands for it: a narrower format is computed as fp32 where it has no
/// unit, and fp64 is never faster than fp32.
std::optional<Roof> matrix_roof(const Roofs& roofs, Precision precision, std::string& remark) {
    if (std::optional<Roof> own = roofs.matrix(precision)) return own;
    const std::optional<Roof> fp32 = roofs.matrix(Precision::fp32);
    if (fp32) remark = fmt::format("no {} unit is stated: at most as fast as {}", name(precision), fp32->ceiling);
    return fp32;
}

struct Flops {
    double all = 0, matrix = 0;
};

Flops flops_of(const Model& model) {
    Flops flops;
    for (std::size_t i = model.untimed_ops; i < model.ops.size(); ++i) {
        const OpNode& node = model.ops[i];
        const double own = node.op.work(node.direction).flops;
        flops.all += own;
        if (node.op.kind().unit(node.direction) == RoofUnit::matrix) flops.matrix += own;
    }
    return flops;
}

bool is_on_each_device(Role role) {
    return role == Role::weights || role == Role::gradients || role == Role::optimizer;
}

/// What one of `devices` moves where each op reads and writes by itself and each device has all weights.
double unfused_bytes(const Model& model, Precision precision, int devices) {
    const Cost total = unfused_cost(model, precision);
    double bytes = 0;
    for (std::size_t role = 0; role < role_count; ++role)
        bytes += (total.bytes_read[role] + total.bytes_written[role]) /
                 (is_on_each_device(static_cast<Role>(role)) ? 1 : devices);
    return bytes;
}

}  // namespace

const ClaimFloor& Claim::floor(Precision precision) const {
    return *std::ranges::find(floors, precision, &ClaimFloor::precision);
}

std::optional<Precision> Claim::headline() const {
    if (claimed) return claimed;
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16})
        if (is_possible(floor(precision))) return precision;
    return std::nullopt;
}

BandwidthAnswer Claim::is_bandwidth_bound(const ClaimFloor& floor) const {
    const double needed_s = std::max(bottleneck_share * seconds(floor), floor.flops_s);
    if (floor.compulsory_s >= needed_s) return BandwidthAnswer::yes;
    return floor.unfused_s < needed_s ? BandwidthAnswer::no : BandwidthAnswer::cannot_tell;
}

Claim check_claim(const ClaimedRun& run, const MachineFile& machine) {
    const Roofs roofs(machine);
    const std::optional<Roof> dram = roofs.bandwidth(Level::dram);
    if (!dram) throw UsageError(fmt::format("{} states no bandwidth of its memory", machine.id));

    Claim claim;
    claim.what = run.what;
    claim.machine = machine.name;
    claim.devices = run.devices;
    claim.bytes_per_s = dram->per_s;
    claim.tdp_w = machine.tdp_w;
    claim.claimed = run.precision;
    claim.fused = run.fused;
    claim.is_claimed = static_cast<bool>(run.seconds);
    for (const Precision precision : all_precisions) {
        const Model model = run.model(precision);
        const Flops flops = flops_of(model);
        if (claim.floors.empty()) claim.flops = flops.all;
        if (claim.floors.empty() && claim.is_claimed) {
            claim.latency_s = run.seconds(flops.all);
            if (!(claim.latency_s >= shortest_s && claim.latency_s <= longest_s))
                throw UsageError(fmt::format("the claimed time is {} s; it must be from {} to {} s", claim.latency_s,
                                             shortest_s, longest_s));
        }
        ClaimFloor floor;
        floor.precision = precision;
        const std::optional<Roof> matrix = matrix_roof(roofs, precision, floor.remark);
        if (!matrix) throw UsageError(fmt::format("{} states no FLOP/s for {}", machine.id, name(precision)));
        const Roof plain = roofs.plain(precision).value_or(*matrix);
        const bool is_one_unit = plain.ceiling == matrix->ceiling;
        const double matrix_s = (is_one_unit ? flops.all : flops.matrix) / matrix->per_s;
        const double plain_s = is_one_unit ? 0 : (flops.all - flops.matrix) / plain.per_s;
        const Roof& longest = matrix_s >= plain_s ? *matrix : plain;
        floor.flops_s = std::max(matrix_s, plain_s) / run.devices;
        floor.ceiling = longest.ceiling;
        floor.peak_flop_per_s = longest.per_s;
        floor.compulsory_bytes = compulsory_bytes(model, precision) / run.devices;
        const bool stays_in_cache = machine.l2_mb && floor.compulsory_bytes <= *machine.l2_mb * 1e6;
        if (stays_in_cache && floor.remark.empty()) floor.remark = "L2 can hold the least traffic";
        floor.compulsory_s = stays_in_cache ? 0 : floor.compulsory_bytes / dram->per_s;
        floor.unfused_bytes = unfused_bytes(model, precision, run.devices);
        floor.unfused_s = floor.unfused_bytes / dram->per_s;
        claim.floors.push_back(std::move(floor));
    }
    if (!claim.is_claimed) claim.latency_s = claim.floor(*claim.headline()).floor_s();
    return claim;
}

}  // namespace kbench
