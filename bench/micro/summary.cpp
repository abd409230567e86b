// The end of `kbench micro`: skips by reason, and providers side by side.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/report/sections/sections.h"
#include "analysis/table/table.h"
#include "bench/micro/console.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// The parts of a benchmark's name, MicroCase::name().
struct NameParts {
    std::string op, provider, precision, direction, shape, cache;
};
using NamePart = std::string NameParts::*;

NameParts name_parts(const Point& point) {
    const std::vector<std::string> names = benchmark_names(point);
    return {names[0], names[1], names[2], names[3], names[4], names[5]};
}

/// Points of one reason, or of one problem.
struct PointGroup {
    std::string key;
    std::vector<const Point*> points;

    std::vector<std::string> values(NamePart part) const {
        std::vector<std::string> found;
        for (const Point* point : points) add_once(found, name_parts(*point).*part);
        return found;
    }
};

/// "gemm m8n8k8 by onednn in fp64, fp16": the shape where it is one.
std::string what_of(const PointGroup& skipped) {
    const auto listed = [&](NamePart part) { return joined(skipped.values(part), ", "); };
    const std::vector<std::string> shapes = skipped.values(&NameParts::shape);
    std::string what = listed(&NameParts::op);
    if (listed(&NameParts::direction) != "fwd") what += ' ' + listed(&NameParts::direction);
    if (shapes.size() == 1) what += ' ' + shapes.front();
    return fmt::format("{} by {} in {}", what, listed(&NameParts::provider), listed(&NameParts::precision));
}

const Summary& ms_of(const Point& point) { return point.end_to_end->latency.summary_ms; }

struct MatrixLabel {
    std::string name;
    NamePart part;
};
const MatrixLabel matrix_labels[] = {{"op", &NameParts::op},
                                     {"precision", &NameParts::precision},
                                     {"direction", &NameParts::direction},
                                     {"shape", &NameParts::shape},
                                     {"cache", &NameParts::cache}};

/// A time for each provider, and who is the fastest among several.
std::vector<std::string> matrix_cells(const PointGroup& problem, const std::vector<std::string>& providers) {
    const auto median = [](const Point* point) { return ms_of(*point).median; };
    const Summary& best = ms_of(**std::ranges::min_element(problem.points, {}, median));
    const TimeUnit unit = time_unit(best.median);
    std::vector<std::string> cells(providers.size(), "-"), fastest;
    for (const Point* point : problem.points) {
        const Summary& ms = ms_of(*point);
        const std::string provider = name_parts(*point).provider;
        const bool is_fastest = problem.points.size() > 1 && may_be_as_fast(ms, best);
        if (is_fastest) fastest.push_back(provider);
        const auto column = static_cast<std::size_t>(std::ranges::find(providers, provider) - providers.begin());
        cells[column] = fmt::format("{}{} {}", is_fastest && providers.size() > 1 ? "* " : "",
                                    significant(ms.median * unit.per_ms, time_digits), unit.name);
    }
    cells.push_back(providers.size() > 1 ? joined(fastest, ", ") : "");
    return cells;
}

/// Tables one below the other, each with as many providers as fit. What is the same in all rows stands above.
std::string matrix(const std::vector<PointGroup>& problems, const PointGroup& measured, std::size_t width) {
    const std::vector<std::string> providers = measured.values(&NameParts::provider);
    std::vector<TableColumn> columns;
    std::vector<std::vector<std::string>> rows(problems.size());
    std::vector<std::string> same;
    for (const MatrixLabel& label : matrix_labels) {
        if (const auto values = measured.values(label.part); values.size() == 1) {
            same.push_back(values.front());
            continue;
        }
        columns.push_back({label.name, Align::left});
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i].push_back(name_parts(*problems[i].points.front()).*label.part);
    }
    const std::size_t labels = columns.size();
    for (const std::string& provider : providers) columns.push_back({provider});
    columns.push_back({"fastest", Align::left});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::vector<std::string> cells = matrix_cells(problems[i], providers);
        rows[i].insert(rows[i].end(), cells.begin(), cells.end());
    }
    const auto table_of = [&](std::size_t first, std::size_t count) {
        const auto picked = [&]<class Cell>(const std::vector<Cell>& from) {
            std::vector<Cell> some;
            for (std::size_t i = 0; i < from.size(); ++i)
                if (i < labels || (i >= first && i < first + count)) some.push_back(from[i]);
            return some;
        };
        Table part(picked(columns));
        for (const std::vector<std::string>& row : rows) part.add_row(picked(row));
        return part;
    };
    std::string title = "Median time";
    if (!same.empty()) title += " of " + joined(same, " ");
    if (providers.size() > 1) title += ", * the fastest (several where their 95 % intervals overlap)";
    std::string text = wrap("", title + ':', width);
    for (std::size_t first = labels, count = 0; first < columns.size(); first += count) {
        count = columns.size() - first;
        while (count > 1 && table_of(first, count).narrowest() > width) --count;
        text += (first > labels ? "\n" : "") + table_of(first, count).text(0, width);
    }
    return text;
}

}  // namespace

std::string micro_summary(std::span<const Point> points, std::size_t width) {
    std::vector<PointGroup> skipped, problems;
    PointGroup measured;
    for (const Point& point : points) {
        if (point.status == PointStatus::skipped) {
            // A group has one op and one provider: with several not every pair of what is listed would be a case.
            const NameParts parts = name_parts(point);
            entry(skipped, &PointGroup::key, parts.op + '/' + parts.provider + '/' + point.reason)
                .points.push_back(&point);
        } else if (point.status == PointStatus::done) {
            std::string problem;
            for (const MatrixLabel& label : matrix_labels) problem += name_parts(point).*label.part + '/';
            entry(problems, &PointGroup::key, problem).points.push_back(&point);
            measured.points.push_back(&point);
        }
    }
    std::string text;
    for (const PointGroup& group : skipped)
        text += wrap("not measured: ",
                     fmt::format("{}: {} ({})", what_of(group), one_line(group.points.front()->reason),
                                 plural(static_cast<std::int64_t>(group.points.size()), "case")),
                     width);
    if (measured.values(&NameParts::provider).size() > 1 || measured.values(&NameParts::shape).size() > 1)
        text += (text.empty() ? "" : "\n") + matrix(problems, measured, width);
    return text.empty() ? text : '\n' + text;
}

}  // namespace kbench
