// kbench ab: two sides in turn, each run a process of its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <regex>
#include <string_view>

#include "analysis/compare/ab.h"
#include "analysis/machine/machine.h"
#include "analysis/report/ab.h"
#include "bench/command/command.h"
#include "bench/command/output.h"
#include "bench/command/repeated/ab_options.h"
#include "bench/command/repeated/child.h"
#include "bench/device/console.h"
#include "bench/measure/machine/environment.h"
#include "bench/measure/point/stop_signal.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view json_name = "ab.json", probe_name = "probe.log";

/// Throws UsageError where `out` holds anything called as what is written there, be it a link to nothing.
void refuse_earlier_runs(const fs::path& out) {
    static const std::regex run("run-[0-9]+-[AB]");
    std::error_code none;  // a folder that is not there yet holds nothing
    for (const auto& entry : fs::directory_iterator(out, none)) {
        const std::string name = entry.path().filename().string();
        if (name == json_name || name == probe_name || std::regex_match(name, run))
            throw UsageError(fmt::format("--out {}: holds {} already; choose another directory or move it away",
                                         out.string(), name));
    }
}

class AbRuns {
  public:
    AbRuns(const AbRequest& request, AbComparison& comparison) : request_(request), comparison_(comparison) {}

    /// One run of each, with every step checked against the reference.
    void verify() {
        if (request_.a_command.has("--no-verify") || request_.b_command.has("--no-verify")) return;
        for (const char side : {'A', 'B'}) describe(side, run(side, true));
        comparison_.verified = true;
        say("A and B are verified\n");
    }

    /// Returns why it ended.
    std::string take_pairs() {
        const auto start = Clock::now();
        std::size_t next_look = next_ab_look(0);
        for (std::size_t pairs = 0;;) {
            if (StopSignals::asked() != 0) return fmt::format("signal {} asked for it", StopSignals::asked());
            if (std::chrono::duration<double>(Clock::now() - start).count() > request_.budget_s)
                return fmt::format("the budget of {:g} s is spent", request_.budget_s);
            take_pair(pairs++);
            write_file_atomically(request_.out / json_name, ab_json(comparison_));
            if (pairs < next_look) continue;
            if (comparison_.is_known()) return fmt::format("every interval is within {:g} %", 100 * comparison_.target);
            next_look = next_ab_look(pairs);
        }
    }

  private:
    void take_pair(std::size_t pair) {
        const char first = ab_side(2 * pair), second = ab_side(2 * pair + 1);
        NamedResult one = run(first, false);
        NamedResult other = run(second, false);
        if (first == 'B') std::swap(one, other);
        if (comparison_.a.device.empty()) {
            describe('A', one);
            describe('B', other);
        }
        std::string line;
        for (const auto& [title, times] : ab_times(one, other)) {
            auto point = std::ranges::find(comparison_.points, title, &AbPoint::title);
            if (point == comparison_.points.end()) point = comparison_.points.insert(point, AbPoint{.title = title});
            point->pairs.push_back(times);
            line += fmt::format("{}{}{}A {:.5g} ms, B {:.5g} ms", line.empty() ? "" : "; ", title,
                                title.empty() ? "" : ": ", times.a_ms, times.b_ms);
        }
        for (AbPoint& point : comparison_.points) point.among = comparison_.points.size();
        if (!request_.quiet) say("pair {}: {}\n", pair + 1, line);
    }

    void describe(char side, const NamedResult& run) {
        AbSide& of = side == 'A' ? comparison_.a : comparison_.b;
        const Environment& e = run.result.environment;
        of.revision = e.git_revision;
        of.device = e.gpu ? device_name(*e.gpu) : e.host.cpu;
    }

    /// An older program may not have the option that leaves out what explains a time.
    bool times_alone(const AbCommand& command) {
        if (!command.is_run() || command.has("--counters") || command.has("--metrics") || command.has("--ceilings"))
            return false;
        if (command.program.empty()) return true;
        const auto known = times_alone_.find(command.program);
        if (known != times_alone_.end()) return known->second;
        const fs::path log = request_.out / probe_name;
        std::vector<std::string> probed = command.arguments;  // are checked, and nothing runs
        probed.insert(probed.end(), {"--latency-only", "--dry-run"});
        const Finished probe = run_child(command.program, probed, log);
        fs::remove(log);
        return times_alone_[command.program] = probe.exit_code == 0;
    }

    NamedResult run(char side, bool verifying) {
        const AbCommand& command = side == 'A' ? request_.a_command : request_.b_command;
        const fs::path directory = request_.out / fmt::format("run-{:03}-{}", ++runs_, side);
        std::vector<std::string> arguments = command.arguments;
        const auto add = [&](std::string_view option, std::string_view value) {
            if (command.has(option)) return;
            arguments.emplace_back(option);
            if (!value.empty()) arguments.emplace_back(value);
        };
        if (times_alone(command)) {
            add("--latency-only", "");
        } else {
            add("--counters", "none");
            add("--ceilings", "none");
        }
        if (verifying && command.is_run()) add("--quick", "");
        if (!verifying) {
            add("--no-verify", "");
            if (command.is_run()) add("--time-budget", "3");
        }
        const std::string who(1, side);
        return {who, directory.string(), run_for_result(who, command.program, std::move(arguments), directory)};
    }

    const AbRequest& request_;
    AbComparison& comparison_;
    int runs_ = 0;
    std::map<std::string, bool> times_alone_;  ///< by program
};

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
    comparison.target = request.target;
    comparison.fail_above = request.fail_above;
    comparison.started_at = utc_now();
    const StopSignals signals;
    AbRuns runs(request, comparison);
    std::string failed;
    try {
        runs.verify();
        comparison.ended = runs.take_pairs();
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
