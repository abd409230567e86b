// What the ranks of one program say together.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/program_findings.h"
#include "analysis/report/sections/sweep_curves.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Ranks whose waits differ by less than this part of an iteration come at the same time, as far as records can tell.
constexpr double noteworthy_lag = 0.02;

double waiting_ms(const SectionContext& context) { return waiting_us(context.explanation().facts) * 1e-3; }

std::int64_t rank_of(const SectionContext& context) { return context.point().axes.count("rank").value_or(0); }

}  // namespace

bool is_of_ranks(const Result& result) {
    return result.points.size() > 1 && std::ranges::all_of(result.points, [](const Point& point) {
               return point.program && point.axes.find("rank") != nullptr;
           });
}

std::vector<std::string> rank_answer(const std::vector<SectionContext>& points) {
    if (points.size() < 2) return {};
    const auto [shortest, longest] = std::ranges::minmax_element(points, {}, median_ms);
    const std::string low = format_ms(median_ms(*shortest)), high = format_ms(median_ms(*longest));
    std::vector<std::string> sentences{
        low == high ? fmt::format("An iteration takes {} at each of the {} ranks.", low, points.size())
                    : fmt::format("An iteration takes {} at rank {}, the longest of {} ranks, and {} at rank {}, the "
                                  "shortest.",
                                  high, rank_of(*longest), points.size(), low, rank_of(*shortest))};
    const auto [last, first] = std::ranges::minmax_element(points, {}, waiting_ms);
    const double least = waiting_ms(*last), most = waiting_ms(*first);
    if (most <= 0) return sentences;
    if (most - least >= noteworthy_lag * median_ms(*longest))
        sentences.push_back(fmt::format(
            "Kernels that wait for other ranks take {} at rank {} and {} at rank {}: rank {} comes last, and "
            "the others wait for it for up to {} (estimated).",
            format_ms(least), rank_of(*last), format_ms(most), rank_of(*first), rank_of(*last),
            format_ms(most - least)));
    else
        sentences.push_back(fmt::format(
            "Kernels that wait for other ranks take {} to {}: all ranks come at about the same time (estimated).",
            format_ms(least), format_ms(most)));
    return sentences;
}

}  // namespace kbench
