// A program that kbench attached to, as its result has it: two layers, a copy and a fill in each iteration. What is
// wrong with it is planted; the figures are round, not measured.
#pragma once

#include <optional>

#include "kbench/result.h"

namespace kbench::example {

/// What is planted, microseconds of an iteration whose kernels take 600.
struct Planted {
    double host_wait_us = 0;      ///< in equal parts before each kernel, in the iteration with records
    double queued_us = 12;        ///< likewise, between launches that came in time
    double copy_us = 6;           ///< a copy of 4.2 MB from pageable memory
    double records_us = 0;        ///< by so much records lengthen an iteration; they wait for the host no less without
    double overlap_us = 0;        ///< the last kernel runs on a second stream, beside others for so long
    bool has_fp32_layer = false;  ///< the products of h.1.mlp run in fp32 without tensor cores
    bool is_named = true;         ///< the framework's calls were recorded
    bool has_roofs = true;
};

Result program(const Planted& planted);

/// A point of kbench's own model without what it would lack as a program: no provider, no check, no run of its steps
/// alone, no interventions, no plan. Its gaps are waits for the host up to `host_share` of them.
Point as_program(Point point, double host_share);

}  // namespace kbench::example
