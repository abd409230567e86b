// How a point is called: in reports, headings, warnings and sentences.
#pragma once

#include <string>
#include <string_view>

#include "kbench/result.h"

namespace kbench {

/// "NAME, batch 1, seq 1024, fp16, cuda", and what is not usual, such as the direction, the attention and, from
/// the second on, the number of a repeat; "(max)" after a batch that was asked for so.
std::string point_name(const Point& point);

/// The same with what holds for all points of a run, usual or not: "NAME fwd, batch 1, ..., attention fused".
std::string point_heading(const Point& point);

/// "NAME batch 1 seq 1024 fp16": what was run, where all else is known. The second has the backend, too.
std::string short_name(const Point& point);
std::string placed_name(const Point& point);

/// "NAME at batch 1, sequence length 1024, fp16".
std::string sentence_name(const Point& point);

/// What is timed of a point, as its phase or direction has it.
struct TimedWords {
    std::string_view of;  ///< the phase or direction
    std::string_view short_name, name, several;
    std::string_view time_is = {};  ///< what follows the time: " a token"
};
const TimedWords& timed_words(const Point& point);
/// Whether its time is that of a CUDA graph, as that of a program is not.
inline bool is_graph(const Point& point) { return point.backend() == "cuda" && !point.program; }

}  // namespace kbench
