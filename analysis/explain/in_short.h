// The answer in short: whether the time is bandwidth, and what it is where it is not.
//
//     const BandwidthBound memory = bandwidth_bound(explanation);
//     fmt::print("Bandwidth-bound? {}: {}.\n", name(memory.answer), memory.why);
//     fmt::print("What binds it: {}.\n", binding_text(explanation));
#pragma once

#include <string>

#include "analysis/explain/bandwidth_answer.h"
#include "analysis/explain/explanation.h"

namespace kbench {

/// "NO", "CANNOT TELL", "YES": where it answers a question.
std::string shouted(BandwidthAnswer answer);

struct BandwidthBound {
    BandwidthAnswer answer = BandwidthAnswer::cannot_tell;
    std::string why;  ///< the figure that says so, without a full stop
};
/// yes: the bandwidth of a memory, which `why` names, is the bottleneck. no: something else is, or DRAM's traffic is
/// too little to be it and no other memory is left. Neither where a thief of DRAM's bandwidth showed the opposite.
BandwidthBound bandwidth_bound(const Explanation& explanation);

/// "compute-bound (fp16_tensor): 64 % of the steps' time; latency-bound 17 %, unknown 8 %", or what may be it. Without
/// a full stop; empty where no step was judged.
std::string binding_text(const Explanation& explanation);

/// What would shorten it and what would not, other hardware too: "a faster unit (a narrower precision, more SMs, a
/// higher power limit) would shorten it, more memory bandwidth would not".
std::string what_would_help(const Explanation& explanation);

/// "its DRAM traffic (measured) takes 19 % of the time at full bandwidth", and what follows; empty where DRAM's traffic
/// or roof is unknown.
std::string dram_traffic_text(const Explanation& explanation);
/// "the bottleneck is one of tensor cores (at most 1.20 ms), launch (at most 0.31 ms)": what was not ruled out.
std::string suspects_text(const Suspects& suspects);
/// What speaks for a verdict: how much of the time has it, if the majority decided.
std::string reason_text(const Verdict& verdict);
/// What to measure next so that the answer becomes certain; empty where all of it was.
std::string next_experiment(const Explanation& explanation);
/// Nobody can tell of so much of the time that one bound may have most of it.
bool is_beyond_telling(const Verdict& verdict);

}  // namespace kbench
