// Roofs: which of a machine's ceilings a step runs against. Pure arithmetic; kernels/probe and cpu/probe measure them,
// machine.h holds what makers state.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/machine/ceiling_kinds.h"
#include "kbench/result.h"

namespace kbench {

/// Levels of the memory hierarchy that a roofline knows. L1 and L2 are a GPU's; a CPU's steps have DRAM alone.
enum class Level { dram, l2, l1 };
inline constexpr Level levels[] = {Level::dram, Level::l2, Level::l1};
inline constexpr std::string_view level_names[] = {"DRAM", "L2", "L1"};
constexpr std::string_view name(Level level) { return level_names[static_cast<int>(level)]; }

struct MachineFile;

/// The ceilings of which one is the roof of a CPU's steps in `precision`: of DRAM, of products, and of everything else.
std::vector<std::string> cpu_ceilings_of(Precision precision);

/// Sets every ceiling's datasheet value to what `machine` states, estimated and with its source; the stated bandwidth
/// of the memory stands beside reads, writes, copies and triads alike. What it does not state, and all where there is
/// no machine, is unavailable with the reason.
void add_datasheet(CeilingRun& run, const MachineFile* machine);

/// One roof as a step meets it.
struct Roof {
    std::string ceiling;   ///< its name
    double per_s = 0;      ///< bytes, FLOPs or instructions a second
    double clock_mhz = 0;  ///< at which it was measured; 0: unknown
    /// measured here; or estimated: a datasheet's figure of the machine of that name, in a result without ceilings.
    Origin origin = Origin::measured;
    /// The interval of its measurement; 0: it has none, as a datasheet's.
    double low_per_s = 0, high_per_s = 0;
};

/// Fewer say little of how a roof moved.
inline constexpr std::size_t fewest_roof_readings = 3;

/// The roofs of one machine.
class Roofs {
  public:
    Roofs() = default;  ///< none
    /// From the measured ceilings of `result`; where it has none, from the datasheet of the machine that its
    /// environment names, if that is known.
    explicit Roofs(const Result& result);
    /// The same for a result that has no points yet, on a machine of `backend`, cuda or cpu.
    Roofs(const Result& result, std::string_view backend);
    /// What was measured on a machine of `backend`, cuda or cpu.
    Roofs(CeilingRun run, std::string_view backend);
    /// What a datasheet states.
    explicit Roofs(const MachineFile& machine);

    /// These with what was read of them between the samples, where that was read at least fewest_roof_readings times:
    /// the median, from the lower quartile to the fastest reading. A GPU's and a datasheet's stay.
    Roofs during(const Conditions& conditions) const;

    /// Measured, or estimated where they are a datasheet's.
    Origin origin() const { return origin_; }
    std::string_view backend() const { return cpu_ ? "cpu" : "cuda"; }

    /// Empty unless there is no roof at all: then why.
    const std::string& unavailable() const { return unavailable_; }
    /// The best bandwidth measured at a level of `backend`; nothing where none was.
    std::optional<Roof> bandwidth(Level level) const;
    /// The fastest unit that can compute products of matrices in `precision`: tensor cores, but plain cores for fp32;
    /// on CPUs the widest instructions. A datasheet of a GPU that states no tensor rate is one without tensor cores, as
    /// a P100: its products in fp16 run on plain cores, and none is stated for bf16 and tf32.
    std::optional<Roof> matrix(Precision precision) const;
    /// The same for kernels that use mma.sync where tensor cores are faster by wgmma; where that was not measured
    /// apart, as matrix().
    std::optional<Roof> matrix_by_mma_sync(Precision precision) const;
    /// The unit that computes everything else: fp32 on plain cores for 16 and 32 bits, fp64 for fp64.
    std::optional<Roof> plain(Precision precision) const;
    /// That of one ceiling.
    std::optional<Roof> roof(std::string_view ceiling) const;
    /// A latency in microseconds by its ceiling's name: launch, graph_node, grid_barrier.
    std::optional<double> latency_us(std::string_view ceiling) const;
    /// One ceiling's value in its unit.
    std::optional<double> value(std::string_view ceiling) const;
    /// The highest SM clock of any measurement: probes of tensor cores may have met the power limit, those of one other
    /// unit do not. 0: none is known.
    double highest_clock_mhz() const;

  private:
    std::optional<Roof> best(std::span<const std::string_view> names) const;

    CeilingRun run_;
    Origin origin_ = Origin::measured;
    bool cpu_ = false;
    bool tensor_cores_ = true;
    std::string unavailable_;
};

}  // namespace kbench
