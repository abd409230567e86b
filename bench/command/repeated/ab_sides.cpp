// Sides that are kbench leave results; other commands are timed, or print a number.
#include "bench/command/repeated/ab_sides.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "analysis/machine/machine.h"
#include "bench/command/repeated/child.h"
#include "bench/command/repeated/output_lines.h"
#include "bench/command/repeated/printed_metric.h"
#include "bench/device/console.h"
#include "bench/device/nvidia.h"
#include "cpu/threads.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// Runs of kbench: the latencies of their results.
class KbenchSides : public AbSides {
  public:
    KbenchSides(const AbRequest& request, AbComparison& comparison) : AbSides(request), comparison_(comparison) {}

    /// With every step checked against the reference.
    void begin() override {
        if (request_.a_command.has("--no-verify") || request_.b_command.has("--no-verify")) return;
        for (const char side : {'A', 'B'}) describe(side, run(side, true));
        comparison_.verified = true;
        say("A and B are verified\n");
    }

    std::vector<std::pair<std::string, AbPair>> take_pair(char first) override {
        NamedResult a = run(first, false);
        NamedResult b = run(first == 'A' ? 'B' : 'A', false);
        if (first == 'B') std::swap(a, b);
        if (comparison_.a.device.empty()) {
            describe('A', a);
            describe('B', b);
        }
        return ab_times(a, b);
    }

  private:
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
        const fs::path log = request_.out / ab_probe_name;
        std::vector<std::string> probed = command.arguments;  // are checked, and nothing runs
        probed.insert(probed.end(), {"--latency-only", "--dry-run"});
        const Finished probe = run_child(command.program, probed, log);
        fs::remove(log);
        return times_alone_[command.program] = probe.exit_code == 0;
    }

    NamedResult run(char side, bool verifying) {
        const AbCommand& of = command(side);
        const fs::path directory = next_run(side);
        std::vector<std::string> arguments = of.arguments;
        const auto add = [&](std::string_view option, std::string_view value) {
            if (of.has(option)) return;
            arguments.emplace_back(option);
            if (!value.empty()) arguments.emplace_back(value);
        };
        if (times_alone(of)) {
            add("--latency-only", "");
        } else {
            add("--counters", "none");
            add("--ceilings", "none");
        }
        if (verifying && of.is_run()) add("--quick", "");
        if (!verifying) {
            add("--no-verify", "");
            if (of.is_run()) add("--time-budget", "3");
        }
        const std::string who(1, side);
        return {who, directory.string(), run_for_result(who, of.program, std::move(arguments), directory)};
    }

    AbComparison& comparison_;
    std::map<std::string, bool> times_alone_;  ///< by program
};

/// "AMD EPYC 9654, 8 x NVIDIA H200".
std::string machine_text() {
    std::map<std::string, int> counts;
    for (const std::string& model : nvidia_models()) ++counts[model];
    std::string text = cpu::cpu_info().model;
    for (const auto& [model, count] : counts) text += (count > 1 ? fmt::format(", {} x ", count) : ", ") + model;
    return text;
}

/// Runs of any commands: how long they take, or what they print.
class CommandSides : public AbSides {
  public:
    CommandSides(const AbRequest& request, AbComparison& comparison) : AbSides(request) {
        if (request.metric != ab_wall) printed_.emplace(request.metric);
        comparison.machine = machine_text();
    }

    void begin() override {
        for (const char side : {'A', 'B'}) run(side, true);
    }

    std::vector<std::pair<std::string, AbPair>> take_pair(char first) override {
        Figure a = run(first, false), b = run(first == 'A' ? 'B' : 'A', false);
        if (first == 'B') std::swap(a, b);
        has_pairs_ = true;
        return {{"", {a.value, b.value, a.digits, b.digits}}};
    }

  private:
    struct Figure {
        double value = 0;
        Digits digits;
    };

    Figure run(char side, bool is_first) {
        fs::path log = next_run(side);
        log += ".txt";
        try {
            const Finished finished = run_child(command(side).program, command(side).arguments, log, Logged::all);
            logs_.push_back(log);
            const Figure figure = figure_of(side, finished, log, is_first);
            if (!is_first) {  // thousands of short runs would each leave a file
                fs::remove(log);
                logs_.pop_back();
            }
            return figure;
        } catch (const UsageError&) {  // files of these names would refuse the corrected command
            if (!has_pairs_)
                for (const fs::path& kept : logs_) fs::remove(kept);
            throw;
        }
    }

    Figure figure_of(char side, const Finished& finished, const fs::path& log, bool is_first) const {
        throw_if_stopped();
        if (finished.exit_code != 0)
            throw MeasurementError(fmt::format("{} failed with exit code {}{}{}; its output is {}", side,
                                               finished.exit_code, finished.last_line.empty() ? "" : ": ",
                                               finished.last_line, log.string()));
        if (!printed_) return {finished.wall_ms, {}};
        const PrintedMetric::Found found = printed_->last_in(log);
        if (found.why_not.empty()) return {found.value, found.digits};
        const std::string text =
            fmt::format("{} printed {}; last it wrote '{}'", side, found.why_not, last_output_line(log));
        if (!is_first) throw MeasurementError(text);
        const fs::path output = request_.out / fmt::format("output-{}.txt", side);
        if (stands(output)) throw UsageError(text);
        fs::rename(log, output);
        throw UsageError(fmt::format("{}, and all of it is {}", text, output.string()));
    }

    std::optional<PrintedMetric> printed_;
    std::vector<fs::path> logs_;  ///< that are kept
    bool has_pairs_ = false;
};

}  // namespace

fs::path AbSides::next_run(char side) { return request_.out / fmt::format("run-{:03}-{}", ++runs_, side); }

std::unique_ptr<AbSides> ab_sides(const AbRequest& request, AbComparison& comparison) {
    if (request.metric.empty()) return std::make_unique<KbenchSides>(request, comparison);
    return std::make_unique<CommandSides>(request, comparison);
}

}  // namespace kbench
