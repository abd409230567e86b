// The sections of a report, each made by one file of this folder. `depth` says how much of it: a summary leaves out
// columns, rows and sentences, and never changes a figure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/directions.h"
#include "analysis/explain/explain.h"
#include "analysis/report/document.h"
#include "analysis/study/study.h"
#include "kbench/result.h"

namespace kbench {

/// Why it takes this long: the answer in sentences.
Section answer_section(const Explanation& explanation);
/// Latency, rates, work, memory and energy, each with its origin.
Section figures_section(const Point& point, const Explanation& explanation, Depth depth);
/// The machine's state during the timing run.
Section conditions_section(const Point& point, Depth depth);
/// What was verified, recorded and counted, or why not, and how long each phase took.
Section checks_section(const Point& point, Depth depth);
/// Lines and their sum, and how far it is from the end-to-end time; in full also by layer and op kind.
Section ledger_section(const Ledger& ledger, Depth depth);
/// What each roof demands of the steps, beside each other, and how long units were busy; by layer and op kind.
Section demands_section(const Ledger& ledger);
/// Cycles without a warp, with and without an issue, as counted; by layer.
Section cycles_section(const CycleAccounts& accounts);
/// Quantities that were found in two ways, and how far they are apart.
Section closures_section(const std::vector<Closure>& closures);
/// What each dependent step of recurrent layers takes; empty where there are none.
Section dependent_section(const std::vector<DependentSteps>& groups);
/// "5 x 500 of lstm, 3.1 us each"; empty where there are none.
std::string dependent_text(const std::vector<DependentSteps>& groups);
/// What taking SMs away did, by op kind and layer.
Section elasticity_section(const SmElasticity& elasticity);
/// The ledger checked by forwards in which the steps of an op kind run twice.
Section marginal_section(const Ledger& ledger);
Section attribution_section(const Attribution& attribution);
Section verdict_section(const Verdicts& verdicts);
/// The steps by op kind and provider, and their sum beside the end-to-end time.
Section ops_section(const Point& point);
/// The slowest layers, the same layer of all blocks as one.
Section layers_section(const Point& point);
/// What the hardware did in each layer: launch and occupancy, in a summary traffic and pipes of the slowest.
Section hardware_section(const Point& point, Depth depth);

/// The backward of a point against the forward in it or, in a sweep over directions, of the point that is equal
/// otherwise; empty of a forward alone.
Directions directions_of(const ExplainedResult& explained, std::size_t point);
Section directions_section(const ExplainedResult& explained, std::size_t point, const Directions& directions,
                           Depth depth);
/// "fwd 310, train 96 (run), in 148 GB"; empty where none is known.
std::string largest_batches_text(const std::vector<LargestBatch>& batches);

/// One row for each point of a sweep.
Section points_section(const ExplainedResult& explained, Depth depth);
/// What a series of points along the batch, or along frames, says that no point does; none where there is no series.
std::vector<Section> series_sections(const ExplainedResult& explained, Depth depth);
/// A study's answers with their tables, what to change, other machines, and the points left aside; none of a result
/// that is no study.
std::vector<Section> study_sections(const ExplainedResult& explained, const Study& study, Depth depth);
Section warnings_section(const Result& result);
Section ceilings_section(const CeilingRun& run);
Section environment_section(const Environment& environment);
/// The same, and the model's config.json as it was read where it has one.
Section environment_section(const Result& result);

/// The models and where they ran: "A, B on NVIDIA H200".
std::string report_title(const Result& result);
/// The whole report, and what a terminal shows of it.
Document report_of(const ExplainedResult& explained);
Document summary_of(const ExplainedResult& explained);

// What several of them need.

inline constexpr int time_digits = 4;  ///< a median is known to about 0.5 %, differences worth seeing are smaller

/// "2.5 GB: weights 1.5 GB, other activations 400 MB, ...": the total and every role that has any.
std::string memory_text(const MemoryPlan& memory);

/// "derived", or with a reason "unavailable: no counter".
std::string origin_text(const Quantity& quantity);
/// A figure, or why there is none.
template <class Format>
Fact fact(std::string_view label, const Quantity& quantity, const Format& format) {
    return {std::string(label), quantity.value ? format(*quantity.value) : std::string(), origin_text(quantity)};
}
/// Of a point that was timed.
std::vector<Fact> energy_facts(const Point& point);
/// With that many decimals.
std::string fixed(double value, int decimals);

}  // namespace kbench
