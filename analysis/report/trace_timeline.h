// When each kernel, step and layer of one forward ran: the medians of a point laid out one after another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/report/trace_events.h"
#include "kbench/result.h"

namespace kbench {

struct TimeSpan {
    Nanoseconds start = 0, end = 0;
};

struct KernelInterval : TimeSpan {
    const KernelResult* kernel = nullptr;
    /// By how much it began before the kernel ahead of it ended; it is drawn that much later, so that none overlap.
    Nanoseconds overlap = 0;
    std::optional<TimeSpan> host_wait = std::nullopt;  ///< before it, where it was launched too late
};

/// From the start of the step's first kernel to the end of its last; without records its median.
struct StepInterval : TimeSpan {
    const StepResult* step = nullptr;
    std::vector<KernelInterval> kernels;
};

/// Consecutive steps of one block ("h.0") or one layer.
struct LayerInterval : TimeSpan {
    std::string name;
    std::size_t first_step = 0, step_count = 0;  ///< in Timeline::steps
};

struct Timeline {
    bool recorded = false;  ///< by activity records; else steps stand one after another, without gaps
    std::optional<TimeSpan> tokens_in, logits_out;  ///< copies before and after the forward
    TimeSpan forward;
    std::vector<StepInterval> steps;
    std::vector<LayerInterval> layers;  ///< a block before the layers that it contains
    std::size_t untimed_steps = 0;      ///< not among the steps
};

/// Starts at 0 with the first copy. `point` must outlive it.
Timeline make_timeline(const Point& point);

/// "h.0" of "h.0.attn": up to the first number; empty where nothing follows a number.
std::string_view block_of(std::string_view layer);

}  // namespace kbench
