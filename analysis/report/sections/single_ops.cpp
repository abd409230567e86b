// What `kbench micro` measured, in short: who computes each problem fastest, and the rates of all.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// The parts of a benchmark's name, OP/PROVIDER/PRECISION/DIRECTION/SHAPE/CACHE.
enum Part : std::size_t { op, provider, precision, direction, shape, cache };

using Names = std::vector<std::string>;

struct Benchmark {
    const Point* point;
    Names names;

    const Summary& ms() const { return point->end_to_end->latency.summary_ms; }
    double tflop_per_s() const { return ms().median > 0 ? point->cost.flops / ms().median * 1e-9 : no_number; }
    std::string time() const {
        const std::string median = significant(ms().median, time_digits) + " ms";
        if (!ms().has_interval()) return median;
        return fmt::format("{} [{}, {}]", median, significant(ms().ci_low, time_digits),
                           significant(ms().ci_high, time_digits));
    }
};

/// What several providers computed, fastest first.
struct Problem {
    Names names;
    std::vector<Benchmark> by = {};

    bool is_tie() const { return by.size() > 1 && may_be_as_fast(by[1].ms(), by[0].ms()); }
    std::string fastest() const {
        return is_tie() ? by[0].names[provider] + " or " + by[1].names[provider] : by[0].names[provider];
    }
};

std::vector<Problem> problems_of(const std::vector<Point>& points) {
    std::vector<Problem> problems;
    for (const Point& point : points) {
        if (!point.end_to_end) continue;
        const Names names = benchmark_names(point);
        Names problem = names;
        problem.erase(problem.begin() + provider);
        entry(problems, &Problem::names, problem).by.push_back({&point, names});
    }
    for (Problem& problem : problems)
        std::ranges::stable_sort(problem.by, {}, [](const Benchmark& one) { return one.ms().median; });
    return problems;
}

/// The parts of a problem in which the problems differ, or those in which they agree.
std::string told(const std::vector<Problem>& problems, const Problem& problem, bool differing) {
    Names parts;
    for (std::size_t i = 0; i < problem.names.size(); ++i) {
        const auto is_same = [&](const Problem& other) { return other.names[i] == problem.names[i]; };
        if (std::ranges::all_of(problems, is_same) != differing) parts.push_back(problem.names[i]);
    }
    return fmt::format("{}", fmt::join(parts, " "));
}

/// "cublaslt in 4 of 5 problems, native_mma in 1"
std::string winners(const std::vector<Problem>& problems) {
    std::vector<std::pair<std::string, int>> wins;
    for (const Problem& problem : problems)
        ++entry(wins, &std::pair<std::string, int>::first, problem.fastest()).second;
    std::ranges::stable_sort(wins, std::greater(), &std::pair<std::string, int>::second);
    std::string text;
    for (const auto& [name, count] : wins)
        text += text.empty() ? fmt::format("{} in {} of {} problems", name, count, problems.size())
                             : fmt::format(", {} in {}", name, count);
    return text;
}

/// A bar for each provider and problem; where there are many, the table has the others.
Chart rates_chart(const std::vector<Problem>& problems) {
    constexpr std::size_t most_drawn = 24;
    BarChart bars{"TFLOP/s", {}, {}};
    for (const Problem& problem : problems) {
        if (bars.labels.size() == most_drawn) break;
        bars.labels.push_back(told(problems, problem, true));
        for (const Benchmark& one : problem.by) entry(bars.series, &ChartSeries::name, one.names[provider]);
    }
    for (std::size_t i = 0; i < bars.labels.size(); ++i)
        for (ChartSeries& series : bars.series) {
            const auto is_by = [&](const Benchmark& one) { return one.names[provider] == series.name; };
            const auto found = std::ranges::find_if(problems[i].by, is_by);
            const bool is_there = found != problems[i].by.end();
            series.add(is_there ? found->tflop_per_s() : no_number,
                       is_there ? fmt::format("{}\n{}, {} TFLOP/s", found->point->model(), found->time(),
                                              significant(found->tflop_per_s()))
                                : "");
        }
    const std::string left =
        problems.size() > most_drawn ? fmt::format("; the first {} of {} problems", most_drawn, problems.size()) : "";
    return {"Useful work by provider, TFLOP/s",
            fmt::format("{}; derived from the cost model's FLOPs and the median time{}",
                        told(problems, problems.front(), false), left),
            std::move(bars)};
}

}  // namespace

Names benchmark_names(const Point& point) {
    constexpr std::size_t parts = 6;
    Names names;
    std::string_view rest = point.axes.find("model") != nullptr ? std::string_view(point.model()) : "";
    while (names.size() + 1 < parts && rest.find('/') != rest.npos) {
        names.emplace_back(rest.substr(0, rest.find('/')));
        rest.remove_prefix(rest.find('/') + 1);
    }
    names.emplace_back(rest);
    names.resize(parts);
    return names;
}

bool may_be_as_fast(const Summary& next, const Summary& first) {
    return next.has_interval() && first.has_interval() ? next.ci_low <= first.ci_high : next.min <= first.max;
}

bool is_of_single_ops(const Result& result) {
    const auto is_op = [](const Point& point) { return point.steps.size() == 1 && point.steps[0].layer == "micro"; };
    return result.points.size() > 1 && std::ranges::any_of(result.points, is_op) &&
           std::ranges::all_of(result.points, [&](const Point& point) { return point.steps.empty() || is_op(point); });
}

Section single_ops_section(const SectionContext& context) {
    Section section{"Fastest by problem"};
    if (!is_of_single_ops(context.result())) return section;
    const std::vector<Problem> problems = problems_of(context.explained.points());
    if (problems.empty()) return section;
    const Benchmark* best = nullptr;
    Rows rows{{names("problem"), words("fastest"), figures("median ms"), figures("95 % interval"), figures("TFLOP/s"),
               words("next"), figures("times as long")}};
    for (const Problem& problem : problems) {
        const Benchmark& first = problem.by.front();
        if (best == nullptr || first.tflop_per_s() > best->tflop_per_s()) best = &first;
        const Summary& ms = first.ms();
        const bool has_next = problem.by.size() > 1 && ms.median > 0;
        rows.rows.push_back(
            {fmt::format("{}", fmt::join(problem.names, " ")), problem.fastest(), significant(ms.median, time_digits),
             ms.has_interval()
                 ? fmt::format("[{}, {}]", significant(ms.ci_low, time_digits), significant(ms.ci_high, time_digits))
                 : "",
             significant(first.tflop_per_s()), has_next ? problem.by[1].names[provider] : "",
             has_next ? significant(problem.by[1].ms().median / ms.median) : ""});
    }
    section.add(Paragraph{fmt::format("Fastest: {}.", winners(problems)), Tone::lead});
    std::string what = best->point->model();
    std::ranges::replace(what, '/', ' ');
    section.add(Paragraph{fmt::format("The highest rate is {} TFLOP/s: {} takes {}.", significant(best->tflop_per_s()),
                                      what, best->time()),
                          Tone::lead});
    section.add(rates_chart(problems));
    section.add(std::move(rows));
    section.add(Paragraph{
        "Two providers are named where their intervals overlap, or where one has no interval and the ranges of their samples overlap. A time without an interval has too few independent samples for one."});
    return section;
}

}  // namespace kbench
