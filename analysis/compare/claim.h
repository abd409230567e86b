// A published figure against physics: how long its work must take at the least on a machine, whatever the program, and
// how much of the time memory bandwidth can explain.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain/bandwidth_answer.h"
#include "analysis/explain/impossible.h"
#include "analysis/machine/machine.h"
#include "kbench/precision.h"
#include "models/model.h"

namespace kbench {

/// What is said to have run: one pass over `model` in `seconds`, on `devices` that share its work.
struct ClaimedRun {
    std::string what;                       ///< the model or op and its point, as sentences name it
    std::function<Model(Precision)> model;  ///< training in 16 bits has tensors that other precisions lack
    /// A time, or what follows from a rate; none where the fastest program that the machine allows is meant.
    std::function<double(double flops)> seconds = {};
    int devices = 1;
    std::optional<Precision> precision = {};  ///< what it is said to have computed in
    std::string fused = {};                   ///< what `model` fuses though another program may not; empty: nothing
};

/// What one precision needs.
struct ClaimFloor {
    Precision precision = Precision::fp32;
    double flops_s = 0;           ///< FLOPs over the roofs of their units, which may work at the same time
    double compulsory_bytes = 0;  ///< weights, inputs and outputs, each once: any program moves them
    double unfused_bytes = 0;     ///< what each op reads and writes by itself, with nothing kept in a cache
    double compulsory_s = 0;      ///< over the memory's bandwidth; 0 where L2 can hold them from run to run
    double unfused_s = 0;         ///< over the memory's bandwidth
    std::string ceiling;          ///< the unit that needs longest
    double peak_flop_per_s = 0;
    std::string remark;  ///< what the machine file lacks and what stands for it; may be empty

    double floor_s() const { return flops_s > compulsory_s ? flops_s : compulsory_s; }
};

struct Claim {
    std::string what, machine;
    int devices = 1;
    double latency_s = 0;    ///< the claimed time; else the least of the headline's precision
    bool is_claimed = true;  ///< else each precision is judged by its own least time
    double flops = 0;        ///< what all devices compute together
    double bytes_per_s = 0;  ///< one device's memory, as the datasheet states it
    std::optional<double> tdp_w;
    std::optional<Precision> claimed;
    std::string fused;
    std::vector<ClaimFloor> floors;

    /// FLOPs over the claimed time, on each device.
    double flop_per_s() const { return flops / latency_s / devices; }
    double seconds(const ClaimFloor& floor) const { return is_claimed ? latency_s : floor.floor_s(); }
    bool is_possible(const ClaimFloor& floor) const { return floor.floor_s() <= impossible_share * seconds(floor); }
    const ClaimFloor& floor(Precision precision) const;
    /// The claimed precision; else the first possible one of fp32, tf32 and fp16, since programs compute in fp32 unless
    /// told otherwise. Nothing where none of those is possible.
    std::optional<Precision> headline() const;
    /// By the bounds of DRAM traffic: at least half of the time, and longer than the FLOPs take at their peak.
    BandwidthAnswer is_bandwidth_bound(const ClaimFloor& floor) const;
};

/// The floors of `run` on `machine`, in every precision. A precision that the machine states no unit for has the roof
/// of the unit that would do its work, which is at least as fast. Weights, gradients and optimizer state are read by
/// each of several devices at the most, and by one of them at the least; what devices exchange is not counted. Throws
/// UsageError for a machine that states no bandwidth or no FLOP/s, and for a time that is not positive.
Claim check_claim(const ClaimedRun& run, const MachineFile& machine);

}  // namespace kbench
