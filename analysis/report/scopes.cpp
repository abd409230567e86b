// A timeline is a table and a chart; runs are bars.
#include "analysis/report/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "models/base/format.h"

namespace kbench {
namespace {

using ScopesJson = nlohmann::ordered_json;

constexpr int ms_digits = 4;

std::string ms_cell(const std::optional<double>& ms) { return ms ? significant(*ms, ms_digits) : ""; }

std::string gpus(const ScopeRun& run) {
    std::string text = plural(static_cast<std::int64_t>(run.device_count()), "GPU");
    if (run.host_count() > 1)
        text += fmt::format(" on {}", plural(static_cast<std::int64_t>(run.host_count()), "host"));
    return text;
}

/// "4 GPUs", or with the run's name where another run has as many.
std::string run_title(const ScopeRun& run, const std::vector<ScopeRun>& runs) {
    const auto same = std::ranges::count_if(runs, [&](const ScopeRun& other) { return gpus(other) == gpus(run); });
    return same > 1 ? fmt::format("{}: {}", one_line(run.name), gpus(run)) : gpus(run);
}

std::string program_name(const ScopeRun& run) {
    const std::vector<std::string>& arguments = run.processes.front().arguments;
    return arguments.empty() ? "" : one_line(std::filesystem::path(arguments.front()).filename().string());
}

std::string mean_text(const MeanTime& mean) {
    if (!mean.ms) return "unknown";
    const std::string value = significant(*mean.ms, ms_digits) + " ms";
    if (!mean.low) return fmt::format("{} (one sample)", value);
    return fmt::format("{} ({} to {}, n = {})", value, significant(*mean.low, ms_digits),
                       significant(*mean.high, ms_digits), mean.n);
}

/// Where a scope was measured.
struct Place {
    const ScopeProfile* process;
    const ScopeDevice* device;
    const ScopeStream* stream;
    const MeasuredScope* scope;
};

/// In the order of processes, devices and streams, within these by time.
std::vector<Place> places(const ScopeRun& run) {
    std::vector<Place> all;
    for (const ScopeProfile& process : run.processes)
        for (const ScopeDevice& device : process.devices)
            for (const ScopeStream& stream : device.streams) {
                const auto first = static_cast<std::ptrdiff_t>(all.size());
                for (const MeasuredScope& scope : stream.scopes) all.push_back({&process, &device, &stream, &scope});
                std::stable_sort(all.begin() + first, all.end(), [](const Place& a, const Place& b) {
                    const auto key = [](const MeasuredScope& scope) {
                        return std::tuple(!scope.offset_ms, scope.offset_ms.value_or(0), scope.start_index);
                    };
                    return key(*a.scope) < key(*b.scope);
                });
            }
    return all;
}

/// The device in words that are the same for all its scopes: "rank 1, GPU 0", or of several hosts "a, rank 1, GPU 0".
std::string device_text(const Place& place, bool has_hosts) {
    std::string text;
    if (has_hosts) text = one_line(place.process->host) + ", ";
    if (place.process->rank) text += fmt::format("rank {}, ", *place.process->rank);
    return text + fmt::format("GPU {}", place.device->id);
}

std::string share_cell(const Place& place) {
    const auto& [ms, iteration] = std::pair(place.scope->time.ms, place.device->iteration.ms);
    return ms && iteration && *iteration > 0 ? percent(*ms / *iteration) : "";
}

Rows scope_rows(const ScopeRun& run) {
    Rows rows{{words("device"), words("stream"), names("scope"), words("in"), figures("start ms"), figures("time ms"),
               figures("from"), figures("to"), figures("n"), figures("of iteration")}};
    const bool is_alone = run.device_count() == 1, has_hosts = run.host_count() > 1;
    for (const Place& place : places(run)) {
        const MeasuredScope& scope = *place.scope;
        rows.rows.push_back({is_alone ? "" : device_text(place, has_hosts), one_line(place.stream->name),
                             one_line(place.stream->title(scope)), scope.in_graph ? "graph" : "",
                             ms_cell(scope.offset_ms), ms_cell(scope.time.ms), ms_cell(scope.time.low),
                             ms_cell(scope.time.high), std::to_string(scope.time.n), share_cell(place)});
    }
    return rows;
}

Rows label_rows(const ScopeRun& run) {
    Rows rows{{names("scope"), figures("average ms"), figures("maximum ms"), figures("of iteration")},
              {},
              "Scopes within others are left out. Average and maximum are over the GPUs."};
    const MeanTime iteration = run.iteration();
    for (const LabelTime& time : label_times(run))
        rows.rows.push_back({one_line(time.label), ms_cell(time.average_ms), ms_cell(time.maximum_ms),
                             iteration.ms && *iteration.ms > 0 ? percent(time.average_ms / *iteration.ms) : ""});
    return rows;
}

/// Labels in the order in which charts colour them: as they first begin, but those that lie only within others last, as
/// the scaling chart leaves them out.
std::vector<std::string> chart_labels(const std::vector<ScopeRun>& runs) {
    std::vector<std::string> labels = scope_labels(runs);
    std::ranges::stable_partition(labels, [&](const std::string& label) {
        return std::ranges::any_of(runs, [&](const ScopeRun& run) {
            return std::ranges::count(label_times(run), label, &LabelTime::label) > 0;
        });
    });
    return labels;
}

/// A lane for each stream, and one more for what lies within.
Chart timeline_chart(const ScopeRun& run, const std::vector<std::string>& labels) {
    TimelineChart chart{"ms", {}, {}, {}};
    for (const std::string& label : labels) chart.names.push_back(one_line(label));
    const bool has_hosts = run.host_count() > 1;
    for (const Place& place : places(run)) {
        const MeasuredScope& scope = *place.scope;
        if (!scope.offset_ms || !scope.time.ms) continue;
        const std::size_t depth = place.stream->depth(scope);
        std::string lane = fmt::format("{}, {}", device_text(place, has_hosts), one_line(place.stream->name));
        if (depth > 0) lane += fmt::format(", within ({})", depth);
        chart.bars.push_back({*scope.offset_ms,
                              *scope.time.ms,
                              place_in(chart.groups, lane),
                              fmt::format("{}\n{} from {} ms on", one_line(place.stream->title(scope)),
                                          mean_text(scope.time), significant(*scope.offset_ms, ms_digits)),
                              {},
                              static_cast<std::size_t>(std::ranges::find(labels, scope.label) - labels.begin())});
    }
    return {"Scopes of an iteration",
            "measured: means, each scope in iterations of its own, from the begin of the iteration on",
            std::move(chart)};
}

Bullets run_notes(const ScopeRun& run) {
    Bullets bullets;
    for (const ScopeProfile& process : run.processes) {
        if (!process.is_complete)
            bullets.items.push_back(fmt::format("{}: the program ended before all was measured", process.path));
        for (const ScopeDevice& device : process.devices)
            for (const std::string& note : device.notes)
                bullets.items.push_back(fmt::format("{}: GPU {}: {}", process.path, device.id, one_line(note)));
    }
    return bullets;
}

Section run_section(const ScopeRun& run, const std::string& heading, const std::vector<std::string>& labels) {
    Section section{heading};
    if (run.device_count() > 1) section.add(label_rows(run));
    Rows rows = scope_rows(run);
    constexpr std::size_t most = 40;  // what a terminal shows of several GPUs
    rows.is_long = run.device_count() > 1 && rows.rows.size() > most;
    if (rows.rows.empty()) section.add(Paragraph{"no scope was measured", Tone::missing});
    section.add(std::move(rows));
    section.add(timeline_chart(run, labels));
    section.add(run_notes(run));
    return section;
}

Rows run_rows(const std::vector<ScopeRun>& runs) {
    Rows rows{{words("run"), figures("GPUs"), figures("hosts"), figures("iteration ms"), figures("from"), figures("to"),
               figures("times the first"), figures("scopes' average ms"), figures("scopes' maximum ms")}};
    const MeanTime first = runs.front().iteration();
    for (const ScopeRun& run : runs) {
        const MeanTime iteration = run.iteration();
        double average = 0, maximum = 0;
        for (const LabelTime& time : label_times(run)) {
            average += time.average_ms;
            maximum += time.maximum_ms;
        }
        const bool has_ratio = first.ms && iteration.ms && *first.ms > 0;
        rows.rows.push_back({one_line(run.name), std::to_string(run.device_count()), std::to_string(run.host_count()),
                             ms_cell(iteration.ms), ms_cell(iteration.low), ms_cell(iteration.high),
                             has_ratio ? fmt::format("{:.3f}", *iteration.ms / *first.ms) : "", ms_cell(average),
                             ms_cell(maximum)});
    }
    return rows;
}

/// What grew most from the first run to the last, on average over the GPUs.
std::string growth_text(const std::vector<ScopeRun>& runs) {
    const std::vector<LabelTime> before = label_times(runs.front()), after = label_times(runs.back());
    const LabelTime* most = nullptr;
    double growth = 0;
    for (const LabelTime& time : after) {
        const auto found = std::ranges::find(before, time.label, &LabelTime::label);
        const double grown = time.average_ms - (found == before.end() ? 0 : found->average_ms);
        if (grown > growth) std::tie(most, growth) = std::tuple(&time, grown);
    }
    if (most == nullptr) return "";
    return fmt::format(" Of the scopes, {} grew most: by {} ms.", one_line(most->label), significant(growth, 3));
}

std::string iteration_answer(const std::vector<ScopeRun>& runs) {
    const ScopeRun &first = runs.front(), &last = runs.back();
    if (runs.size() == 1) return fmt::format("An iteration takes {} on {}.", mean_text(first.iteration()), gpus(first));
    return fmt::format("An iteration takes {} on {} and {} on {}.{}", mean_text(first.iteration()),
                       run_title(first, runs), mean_text(last.iteration()), run_title(last, runs), growth_text(runs));
}

template <class T>
ScopesJson or_null(const std::optional<T>& value) {
    return value ? ScopesJson(*value) : ScopesJson();
}

ScopesJson mean_json(const MeanTime& mean) {
    return {{"ms", or_null(mean.ms)}, {"low", or_null(mean.low)}, {"high", or_null(mean.high)}, {"n", mean.n}};
}

}  // namespace

Chart scaling_chart(const std::vector<ScopeRun>& runs) {
    BarChart chart{"ms", {}, {}, true, 3};
    chart.series.push_back({"whole iteration", {}, {}, {}, {}, true});
    const std::vector<std::string> labels = chart_labels(runs);
    for (const std::string& label : labels) chart.series.push_back({one_line(label)});
    for (const ScopeRun& run : runs) {
        const std::string name = run_title(run, runs);
        for (const char* bar : {"iteration", "scopes, average", "scopes, maximum"}) {
            chart.labels.push_back(fmt::format("{}: {}", name, bar));
            for (ChartSeries& series : chart.series) series.add(no_number, "");
        }
        const std::size_t at = chart.labels.size() - 3;
        if (const MeanTime iteration = run.iteration(); iteration.ms) {
            chart.series[0].values[at] = *iteration.ms;
            chart.series[0].hover[at] = mean_text(iteration);
        }
        for (const LabelTime& time : label_times(run)) {
            ChartSeries& series =
                chart.series[static_cast<std::size_t>(1 + std::ranges::find(labels, time.label) - labels.begin())];
            for (const auto& [bar, ms] : {std::pair(at + 1, time.average_ms), {at + 2, time.maximum_ms}}) {
                series.values[bar] = ms;
                series.hover[bar] = fmt::format("{}\n{} ms", one_line(time.label), significant(ms, ms_digits));
            }
        }
    }
    std::erase_if(chart.series, [](const ChartSeries& series) {
        return std::ranges::all_of(series.values, [](double ms) { return std::isnan(ms); });
    });
    return {
        "Scaling",
        "measured: the iteration of the slowest GPU; scopes over the GPUs, without those that lie within others. Scopes of several streams run at the same time, so that a stack may be longer than the iteration",
        std::move(chart)};
}

Document scopes_document(const std::vector<ScopeRun>& runs) {
    Section first{""};
    first.add(Paragraph{iteration_answer(runs), Tone::lead});
    if (runs.size() > 1) {
        first.add(run_rows(runs));
        first.add(scaling_chart(runs));
    }
    std::string heading = "Scopes";
    if (const std::string name = program_name(runs.front()); !name.empty()) heading += " of " + name;
    Document document{heading, {std::move(first)}};
    const std::vector<std::string> labels = chart_labels(runs);
    for (const ScopeRun& run : runs)
        document.sections.push_back(run_section(run, runs.size() == 1 ? "Timeline" : run_title(run, runs), labels));
    Section method{"How it was measured"};
    method.is_folded = true;
    method.add(Paragraph{
        "An iteration holds one pair of events, around one scope, between those of the iteration itself. The next iteration measures the next scope. A time is what passed on the GPU between both events, so it includes pauses between kernels. Intervals (95 %) are those of the mean; what differs from run to run is not in them."});
    document.sections.push_back(std::move(method));
    return document;
}

std::string scopes_json(const std::vector<ScopeRun>& runs) {
    ScopesJson all = ScopesJson::array();
    for (const ScopeRun& run : runs) {
        ScopesJson labels = ScopesJson::array(), scopes = ScopesJson::array();
        for (const LabelTime& time : label_times(run))
            labels.push_back({{"label", time.label}, {"average_ms", time.average_ms}, {"maximum_ms", time.maximum_ms}});
        for (const Place& place : places(run)) {
            const MeasuredScope& scope = *place.scope;
            scopes.push_back({{"host", place.process->host},
                              {"rank", or_null(place.process->rank)},
                              {"device", place.device->id},
                              {"stream", place.stream->name},
                              {"label", scope.label},
                              {"occurrence", scope.occurrence},
                              {"in_graph", scope.in_graph},
                              {"depth", place.stream->depth(scope)},
                              {"start_ms", or_null(scope.offset_ms)},
                              {"time", mean_json(scope.time)}});
        }
        all.push_back({{"run", run.name},
                       {"gpus", run.device_count()},
                       {"hosts", run.host_count()},
                       {"iteration", mean_json(run.iteration())},
                       {"labels", std::move(labels)},
                       {"scopes", std::move(scopes)},
                       {"notes", run_notes(run).items}});
    }
    const ScopesJson document{{"schema", "kbench.scope_report/1"}, {"runs", std::move(all)}};
    return document.dump(2, ' ', false, ScopesJson::error_handler_t::replace) + '\n';
}

}  // namespace kbench
