// The points of a sweep as data: which there are, in which order, what each is called. Measures nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"

namespace kbench {

/// What a sweep may vary, the slowest first.
enum class SweepAxis { seq, batch, precision };
inline constexpr std::string_view sweep_axis_names[] = {"seq", "batch", "precision"};
constexpr std::string_view name(SweepAxis axis) { return sweep_axis_names[static_cast<int>(axis)]; }

/// A batch asked for as "max": the largest that fits into memory.
inline constexpr std::int64_t max_batch = 0;

/// The values on each axis.
struct SweepOptions {
    std::vector<Precision> precisions{Precision::fp32};
    std::vector<std::int64_t> batches{1};  ///< max_batch among them
    std::vector<std::int64_t> seqs;        ///< empty: the model's n_ctx
    std::vector<SweepAxis> zip;            ///< axes whose lists go in step instead of every value with every other
    int repeats = 1;                       ///< how often the whole list is gone through
    int only_repeat = 0;                   ///< this one of them, from 1; 0: all
};

/// One point to measure.
struct PointSpec {
    Precision precision = Precision::fp32;
    std::int64_t seq = 0, batch = 1;
    int repeat = 1;  ///< from 1

    /// "seq128-batch4-fp16", "seq128-batchmax-fp16-repeat2": distinct within a sweep, and fit for a file's name.
    std::string name() const;
    bool operator==(const PointSpec&) const = default;
};

/// All points in the order in which they are measured: repeat by repeat, then by sequence length, batch and precision,
/// the last the fastest. Neighbours in time so differ in precision first, and what drifts in time (heat, clocks, other
/// users) meets all kinds and all repeats alike. Throws UsageError when zipped lists differ in length, or a point
/// stands there twice.
std::vector<PointSpec> sweep_points(const SweepOptions& sweep, std::int64_t n_ctx);

}  // namespace kbench
