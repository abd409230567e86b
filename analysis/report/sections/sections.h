// The sections of a report. Each is one file of this folder, NAME.cpp, which makes it in NAME_section(), and one row of
// the table in document.cpp; every renderer shows it. A summary leaves out columns, rows and sentences, and never
// changes a figure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/causes.h"
#include "analysis/explain/directions.h"
#include "analysis/explain/explain.h"
#include "analysis/report/document.h"
#include "analysis/study/study.h"
#include "kbench/result.h"
#include "models/base/format.h"

namespace kbench {

/// What a section is made from.
struct SectionContext {
    const ExplainedResult& explained;
    Depth depth = Depth::full;
    std::size_t index = 0;  ///< index of the point that the section is about, if it is about one

    const Result& result() const { return explained.result(); }
    const Point& point() const { return explained.points()[index]; }
    const Explanation& explanation() const { return explained.of(index); }
    bool is_full() const { return depth == Depth::full; }
};

/// What a section tells of. Those of points stand together, in a section of each point.
enum class Of { result, point };
/// The documents that have it: the whole report, where a page may fold it; the summary for a terminal; both of them; or
/// the one screen.
enum class StandsIn { full, folded, summary, both, screen };

struct SectionKind {
    std::string_view name;
    Of of;
    StandsIn in;
    /// A section without a title stands for its blocks and sections, where it stands.
    Section (*make)(const SectionContext& context);
};

/// All of them, in their order. A section that stands elsewhere in the summary has a row for each document.
std::span<const SectionKind> section_kinds();
/// Throws std::out_of_range where there is none called `name`.
Section section_called(std::string_view name, const SectionContext& context);

/// The whole report, what a terminal shows of it, and the answer on one screen.
Document report_of(const ExplainedResult& explained, std::span<const SectionKind> kinds = section_kinds());
Document summary_of(const ExplainedResult& explained, std::span<const SectionKind> kinds = section_kinds());
Document screen_of(const ExplainedResult& explained, std::span<const SectionKind> kinds = section_kinds());
/// The models and where they ran: "A, B on NVIDIA H200".
std::string report_title(const Result& result);

// What several of them, or others, need.

/// Whether its points are the ranks of one program.
bool is_of_ranks(const Result& result);

Section ceilings_section(const CeilingRun& run);
Section environment_section(const Environment& environment);
/// The GPU and its driver, or the CPU, its cores and threads; and kbench's version.
std::string device_text(const Environment& environment, bool is_gpu);
Section time_breakdown_section(const TimeBreakdown& breakdown, Depth depth);
/// The backward of a point against the forward in it or, in a sweep over directions, of the point that is equal
/// otherwise; empty of a forward alone.
Directions directions_of(const ExplainedResult& explained, std::size_t point);
Section directions_section(const ExplainedResult& explained, std::size_t point, const Directions& directions,
                           Depth depth);
/// "fwd 310, train 96 (run), in 148 GB"; empty where none is known.
std::string largest_batches_text(const std::vector<LargestBatch>& batches);
/// Whether the points of the result are told of as a sweep: a study says it in its own way.
bool is_told_as_sweep(const SectionContext& context);
/// Whether the points are single ops, as `kbench micro` measures them.
bool is_of_single_ops(const Result& result);
/// The six parts of such a point's name: op, provider, precision, direction, shape, cache.
std::vector<std::string> benchmark_names(const Point& point);
/// Whether `next`, whose median is no shorter, may be as fast as `first`: their 95 % intervals overlap, or where one
/// has none, all their samples do.
bool may_be_as_fast(const Summary& next, const Summary& first);
/// "5 x 500 of lstm, 3.1 us each"; empty where there are none.
std::string serial_chain_text(const std::vector<SerialChain>& groups);

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
/// Whether a step that was checked is not within its bound.
bool has_wrong_step(const Verification& verification);
/// How many steps were held against the reference, and how far off they are: on a screen without the details.
std::string verified_text(const Verification& verification, Depth depth);
/// A stacked bar for each group, in milliseconds.
BarChart cause_bars(const std::vector<const CauseGroup*>& groups);
/// What a page shows first of a point: whether it is bandwidth, what it is, four figures, what would change it, and the
/// time of the slowest layers by cause.
Section first_screen_section(const SectionContext& context);
/// Whether neither the cost model nor counters know the work of any kernel, as of a program whose ops are not named.
bool has_no_known_work(const PointFacts& facts);
inline constexpr std::string_view no_known_work = "of no op the shape is known, and DRAM was not counted";
/// "Of kernels with 12 % of the time FLOPs and bytes are not known, so they are not in these."; empty where all are.
std::string unknown_work_text(const PointFacts& facts);
/// Whether the machine's state was read meanwhile, as it may not be beside a program.
bool was_watched(const Point& point);
/// Energy of a point that was timed.
std::vector<Fact> energy_facts(const Point& point);
/// With that many decimals.
std::string fixed(double value, int decimals);
/// Times of one table or sentence: all in the unit that suits the largest or the median, with as many decimals.
class TimesInUnit {
  public:
    explicit TimesInUnit(double ms) : unit_(time_unit(ms)), decimals_(decimals_for(ms * unit_.per_ms, time_digits)) {}
    std::string operator()(double ms) const { return fixed(ms * unit_.per_ms, decimals_); }
    std::string_view unit() const { return unit_.name; }

  private:
    TimeUnit unit_;
    int decimals_;
};
/// "12.3 us", "4.56 ms".
std::string time_text(double us);
/// "12 h.1.attn", and what computes it: the name of a step where one points at it.
std::string step_text(const StepResult& step);

}  // namespace kbench
