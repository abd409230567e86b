// A published figure against physics: how long a model must take at the least on a machine, whatever the program.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/impossible.h"
#include "analysis/machine/machine.h"
#include "kbench/precision.h"
#include "models/model.h"

namespace kbench {

/// What one precision needs at the least.
struct ClaimFloor {
    Precision precision = Precision::fp32;
    double flops_s = 0;           ///< FLOPs over the roofs of their units, which may work at the same time
    double compulsory_bytes = 0;  ///< weights, inputs and outputs, each once
    double bytes_s = 0;           ///< those over the memory's bandwidth
    std::string ceiling;          ///< the unit that needs longest
    double peak_flop_per_s = 0;
    std::string remark;  ///< what the machine file lacks and what stands for it; may be empty

    double floor_s() const { return flops_s > bytes_s ? flops_s : bytes_s; }
};

struct Claim {
    std::string model, machine;
    double latency_s = 0;
    double flops = 0;
    double bytes_per_s = 0;  ///< the memory's, as the datasheet states it
    std::vector<ClaimFloor> floors;

    /// FLOPs of the model over the claimed time.
    double flop_per_s() const { return flops / latency_s; }
    bool is_possible(const ClaimFloor& floor) const { return floor.floor_s() <= impossible_share * latency_s; }
};

/// `latency_s` for one forward of `model` on `machine`, in every precision. A precision that the machine states no unit
/// for has the roof of the unit that would do its work, which is at least as fast. Throws UsageError for a machine that
/// states no bandwidth or no FLOP/s, and for a time that is not positive.
Claim check_claim(const Model& model, const MachineFile& machine, double latency_s);

}  // namespace kbench
