// kbench ab: two sides in turn, each run a process of its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <regex>
#include <string_view>

#include "analysis/compare/ab.h"
#include "analysis/report/ab.h"
#include "bench/command/command.h"
#include "bench/command/output.h"
#include "bench/command/repeated/ab_options.h"
#include "bench/command/repeated/ab_sides.h"
#include "bench/device/console.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/point/stop_signal.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view json_name = "ab.json";

/// Throws UsageError where `out` holds anything called as what is written there, be it a link to nothing.
void refuse_earlier_runs(const fs::path& out) {
    static const std::regex run("run-[0-9]+-[AB](\\.txt)?");
    std::error_code none;  // a folder that is not there yet holds nothing
    for (const auto& entry : fs::directory_iterator(out, none)) {
        const std::string name = entry.path().filename().string();
        if (name == json_name || name == ab_probe_name || std::regex_match(name, run))
            throw UsageError(fmt::format("--out {}: holds {} already; choose another directory or move it away",
                                         out.string(), name));
    }
}

/// Pairs of runs until they say enough.
class AbRuns {
  public:
    AbRuns(const AbRequest& request, AbSides& sides, AbComparison& comparison)
        : request_(request), sides_(sides), comparison_(comparison) {}

    /// Returns why it ended.
    std::string take_pairs() {
        const auto start = Clock::now();
        std::size_t next_look = next_ab_look(0, comparison_.metric);
        for (std::size_t pairs = 0;;) {
            if (StopSignals::asked() != 0) return fmt::format("signal {} asked for it", StopSignals::asked());
            if (std::chrono::duration<double>(Clock::now() - start).count() > request_.budget_s)
                return fmt::format("the budget of {:g} s is spent", request_.budget_s);
            take_pair(pairs++);
            keep();
            if (pairs < next_look) continue;
            if (comparison_.is_known()) return fmt::format("every interval is within {:g} %", 100 * comparison_.target);
            next_look = next_ab_look(pairs, comparison_.metric);
        }
    }

  private:
    void take_pair(std::size_t pair) {
        std::string line;
        for (const auto& [title, figures] : sides_.take_pair(ab_side(2 * pair))) {
            comparison_.point(title).pairs.push_back(figures);
            const char* unit = info(comparison_.metric).is_time ? " ms" : "";
            line += fmt::format("{}{}{}A {:.5g}{}, B {:.5g}{}", line.empty() ? "" : "; ", title,
                                title.empty() ? "" : ": ", figures.a, unit, figures.b, unit);
        }
        for (AbPoint& point : comparison_.points) point.among = comparison_.points.size();
        if (!request_.quiet && is_due(told_, 0.2)) say("pair {}: {}\n", pair + 1, line);
    }

    /// Writes what is there. Not after each of thousands of short runs, which it would disturb; the end writes all.
    void keep() {
        if (is_due(kept_, 1)) write_file_atomically(request_.out / json_name, ab_json(comparison_));
    }

    /// Whether `every_s` have passed since it last was.
    static bool is_due(std::optional<Clock::time_point>& last, double every_s) {
        const auto now = Clock::now();
        if (last && std::chrono::duration<double>(now - *last).count() < every_s) return false;
        last = now;
        return true;
    }

    const AbRequest& request_;
    AbSides& sides_;
    AbComparison& comparison_;
    std::optional<Clock::time_point> told_, kept_;
};

AbMetric metric_of(const AbRequest& request) {
    if (request.metric.empty()) return AbMetric::latency;
    return request.metric == ab_wall ? AbMetric::wall : AbMetric::printed;
}

}  // namespace

int ab_command(const std::vector<std::string>& arguments, const std::string&) {
    ParsedAb parsed = parse_ab(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    AbRequest& request = parsed.request;
    refuse_earlier_runs(request.out);
    const OutputDirectory out = prepare_directory(request.out, "ab");
    request.out = out.path;
    refuse_earlier_runs(request.out);  // that another one wrote until it let go of the folder
    AbComparison comparison;
    comparison.a = {"A", request.a_command.text(), {}, {}};
    comparison.b = {"B", request.b_command.text(), {}, {}};
    comparison.metric = metric_of(request);
    if (comparison.metric == AbMetric::printed) comparison.pattern = request.metric;
    comparison.target = request.target;
    comparison.fail_above = request.fail_above;
    comparison.fail_below = request.fail_below;
    comparison.started_at = utc_now();
    const StopSignals signals;
    const std::unique_ptr<AbSides> sides = ab_sides(request, comparison);
    std::string failed;
    try {
        sides->begin();
        comparison.ended = AbRuns(request, *sides, comparison).take_pairs();
    } catch (const Error& error) {
        if (comparison.points.empty() && error.code() == ExitCode::usage) throw;
        comparison.ended = failed = error.what();
    }
    write_file_atomically(request.out / json_name, ab_json(comparison));
    const std::string text =
        request.format == "json" ? ab_json(comparison) : written(ab_document(comparison), request.format);
    put_text(text);
    say("wrote {}\n", (request.out / json_name).string());
    if (StopSignals::asked() != 0) return 128 + StopSignals::asked();
    if (!failed.empty()) throw MeasurementError(failed);
    return static_cast<int>(comparison.regressions().empty() ? ExitCode::success : ExitCode::failed);
}

}  // namespace kbench
