// Frames of a point whose sequences may be of several lengths: all that are computed, and those within a sequence.
#pragma once

#include <optional>
#include <string_view>

#include "kbench/result.h"

namespace kbench {

struct Frames {
    double padded = 0;  ///< batch times the longest
    double useful = 0;  ///< within the sequences
    double padding_share() const { return 1 - useful / padded; }
};

/// Nothing for a point without frames.
std::optional<Frames> frames_of(const Point& point);

/// What a batch consists of: "utterance" of a point with frames, else "sequence".
std::string_view sequence_word(const Point& point);

}  // namespace kbench
