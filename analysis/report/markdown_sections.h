// The sections of report.md, each a pure function that gives "" where it has nothing to say.
#pragma once

#include <string>

#include "analysis/explain/explain.h"
#include "kbench/result.h"

namespace kbench {

/// A point's sections stand below a heading of this many #.
struct Heading {
    int level = 2;
    std::string text(std::string_view title) const {
        return std::string(static_cast<std::size_t>(level), '#') + ' ' + std::string(title) + '\n';
    }
};

std::string answer_section(const Explanation& explanation, Heading heading);
/// Latency, rates, work, memory and energy, each with its origin.
std::string figures_section(const Point& point, const Explanation& explanation, Heading heading);
/// Lines, layers and op kinds, and how far the sum is from the end-to-end time.
std::string ledger_section(const Ledger& ledger, Heading heading);
std::string marginal_section(const Ledger& ledger, Heading heading);
std::string attribution_section(const Attribution& attribution, Heading heading);
std::string verdict_section(const Verdicts& verdicts, Heading heading);
/// Launch and occupancy of each layer; the same layer of all blocks as one.
std::string occupancy_section(const Point& point, Heading heading);
/// The machine's state during the timing run.
std::string conditions_section(const Point& point, Heading heading);

std::string ceilings_section(const CeilingRun& run, Heading heading);
std::string environment_section(const Environment& environment, Heading heading);

/// "measured", or with the reason: "unavailable: no counter".
std::string origin_cell(const Quantity& quantity);

}  // namespace kbench
