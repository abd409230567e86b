// How long one thread of a probe ran, by its SM's clock and in time: the clock at which a ceiling was measured.
#pragma once

#include <cstdint>

namespace kbench::cuda::probe {

/// Written by the first thread of a grid. The timer may tick only once a microsecond.
struct Span {
    std::uint64_t cycles = 0, ns = 0;

    /// The SM's clock, or 0 where the span is too short for the timer to tell within about 1 %.
    double mhz() const { return ns < 200'000 ? 0 : 1e3 * static_cast<double>(cycles) / static_cast<double>(ns); }
};

}  // namespace kbench::cuda::probe
