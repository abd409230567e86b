// Lines of the breakdown by cause, to be compared with truths.
//
//     planted.figures = cause_figures({{"fixed time", {Cause::fixed}, 120000}});  // cycles of the SM's clock
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/causes.h"
#include "tests/truths/truth.h"

namespace kbench {

/// Lines of which only the sum is known.
struct PlantedLines {
    std::string what;
    std::vector<Cause> causes;
    double planted;  ///< cycles of the SM's clock for a GPU's work, microseconds for a CPU's
};

/// Holds for the first step, at the clock of the run: each of `lines`, within cause_tolerance of what was planted, and
/// every other line, of which nothing was planted, within figure_tolerance of the step's time.
std::vector<PlantedFigure> cause_figures(const std::vector<PlantedLines>& lines);

/// The same where the step is nothing but `cause`, however long it takes: its memory is shared with other programs.
std::vector<PlantedFigure> figures_of_one_cause(Cause cause);

}  // namespace kbench
