// FLOPs that a step executed, from its counters: of tensor cores by their inputs' type, of plain cores by precision.
#pragma once

#include <optional>

#include "analysis/facts/counters.h"
#include "kbench/precision.h"

namespace kbench {

/// The counter of multiplications and additions by tensor cores with inputs of `type`; null for fp32, of which tensor
/// cores take no inputs.
CounterOf tensor_counter(Precision type);

/// What it counted; nothing when it was not counted, and for fp32.
std::optional<double> tensor_flops(const Counters& counters, Precision type);
/// With inputs of every type; nothing unless all were counted.
std::optional<double> tensor_flops(const Counters& counters);

/// FLOPs outside tensor cores, an FMA being 2, from SASS thread instructions whose predicate was on. fp32 takes in the
/// packed instructions (two numbers each) of the chips that count them. fp16 and bf16 share HADD, HMUL and HFMA, which
/// are taken as packed pairs: both give the FLOPs of either type. Nothing when an instruction was not counted, and for
/// tf32, which exists on tensor cores only.
std::optional<double> plain_flops(const Counters& counters, Precision precision);

/// FLOPs by inputs of `precision`: fp16, bf16 and tf32 on tensor cores, fp32 on plain cores, fp64 on both. What plain
/// cores did in 16 bits is in none of them, as fp16 and bf16 cannot be told apart there.
std::optional<double> executed_flops(const Counters& counters, Precision precision);

/// All FLOPs, of tensor and plain cores; nothing when a part was not counted.
std::optional<double> executed_flops(const Counters& counters);

}  // namespace kbench
