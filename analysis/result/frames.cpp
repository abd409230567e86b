// Frames follow from a point's axes: its batch, its longest sequence and its useful frames.
#include "analysis/result/frames.h"

namespace kbench {

std::optional<Frames> frames_of(const Point& point) {
    const std::optional<std::int64_t> longest = point.axes.count("frames");
    if (!longest) return std::nullopt;
    const std::int64_t padded = *longest * point.batch();
    return Frames{static_cast<double>(padded), static_cast<double>(point.axes.count("useful_frames").value_or(padded))};
}

std::string_view sequence_word(const Point& point) { return point.axes.count("frames") ? "utterance" : "sequence"; }

}  // namespace kbench
