// Plants every truth, measures it, and prints what was planted beside what kbench says of it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/profile/starvation.h"
#include "cpu/probe/probe.h"
#include "kbench/error.h"
#include "kbench/statistics.h"
#include "models/base/write_file.h"
#include "tests/truths/matrix.h"
#include "tests/truths/planter.h"
#include "tests/truths/truth.h"

namespace kbench {
namespace {

struct Options {
    std::uint64_t seed = 1;
    std::vector<std::string> only;
    std::string backend = "all";
    std::filesystem::path json;
};

/// Returns whether there is something to do: not where help was asked for.
bool parse(int argc, char** argv, Options& options) {
    CLI::App app(
        "Kernels of known behaviour, measured and explained as a model is: a matrix of what was planted and what kbench says.\nExit codes: 0 passed; 1 a truth is WRONG, or more than one cannot be told; 2 bad usage; 3 no GPU or no counters.");
    app.add_option("--seed", options.seed, "decides sizes, shares and counts")->capture_default_str();
    app.add_option("--only", options.only, "NAME,...: these truths alone")->delimiter(',');
    app.add_option("--backend", options.backend)->check(CLI::IsMember({"cuda", "cpu", "all"}))->capture_default_str();
    app.add_option("--json", options.json, "also write the matrix there");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        fmt::print("{}", app.help());
        return false;
    } catch (const CLI::ParseError& error) {
        throw UsageError(error.what());
    }
    std::vector<std::string_view> names;
    for (const Truth& truth : truths()) names.push_back(truth.name);
    for (const std::string& name : options.only)
        if (std::ranges::find(names, name) == names.end())
            throw UsageError(fmt::format("--only '{}': must be of {}", name, fmt::join(names, ", ")));
    return true;
}

bool is_chosen(const Truth& truth, const Options& options) {
    if (options.backend != "all" && options.backend != name(truth.backend)) return false;
    return options.only.empty() || std::ranges::find(options.only, truth.name) != options.only.end();
}

/// How often a truth is measured on a host that others disturb. After that it is WRONG if it always was, three times at
/// least, else one that cannot be told, of which a matrix may have one.
constexpr int most_attempts = 8, least_attempts = 3;
/// After the least number, no attempt begins later than that.
constexpr double attempts_s = 75;

/// The roofs of a device. Those of a CPU that truths are judged by are measured again as often as they are asked for.
class DeviceRoofs {
  public:
    explicit DeviceRoofs(Device& device) : roofs_(measured_roofs(device, 2)) {
        if (!device.is_gpu()) reader_.emplace(cpu_ceilings_of(Precision::fp32), device.free_bytes());
    }
    /// A CPU's are the fastest of five readings.
    CeilingRun now() const {
        constexpr std::size_t readings = 5;
        CeilingRun now = roofs_;
        if (!reader_) return now;
        std::vector<std::vector<double>> values(reader_->names().size());
        for (std::size_t reading = 0; reading < readings; ++reading) {
            const std::vector<double> read = reader_->read();
            for (std::size_t i = 0; i < read.size(); ++i) values[i].push_back(read[i]);
        }
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto ceiling = std::ranges::find(now.ceilings, reader_->names()[i], &Ceiling::name);
            if (ceiling == now.ceilings.end()) continue;
            const Summary summary = summarise(values[i]);
            ceiling->value = Quantity::measured(summary.max);
            ceiling->low = summary.median;
            ceiling->high = summary.max;
        }
        return now;
    }

  private:
    CeilingRun roofs_;
    std::optional<cpu::RoofReader> reader_;
};

/// Planted anew and measured, by roofs of just before. What is ok counts however busy the host is: that others' work
/// made every figure right is unlikely.
Judgement attempt(const Truth& truth, const KnownSteps& known, const DeviceRoofs& roofs, std::uint64_t seed,
                  std::string& disturbed) {
    const Planter planter(known);
    const Planted planted = truth.plant(planter, draw(truth.name, seed, truth.draws));
    Judgement judgement{.truth = std::string(truth.name), .planted = planted.what};
    try {
        const HostLook before{planter.pace_ms(planted.steps), known.roofs()};
        StarvationWatch starvation(known.machine_state());
        starvation.begin();
        const KnownResult result = known.measure(planted.steps, planted.budget);
        const bool starved = starvation.lacked(true).value_or(false);
        judgement = judge(truth.name, planted, result);
        if (judgement.result == TruthResult::ok) return judgement;
        if (known.device().is_gpu()) return judgement;
        if (starved)
            disturbed = "the process lacked its CPUs meanwhile";
        else
            disturbed = disturbance(before, result, {planter.pace_ms(planted.steps), roofs.now()});
        // No conclusion is kbench's own word that the figures carry none.
        if (const Verdict& model = result.explained.verdicts.model; disturbed.empty() && model.rule == "no-ground")
            disturbed = model.evidence.empty() ? "no conclusion is drawn" : model.evidence.front();
    } catch (const Unsupported&) {
        throw;
    } catch (const Error& error) {
        judgement.result = TruthResult::cannot_tell;
        judgement.why = error.what();
    }
    return judgement;
}

Judgement look_at(const Truth& truth, const KnownSteps& known, const DeviceRoofs& roofs, std::uint64_t seed) {
    Device& device = known.device();
    try {
        Judgement last;
        bool always_wrong = true;
        const auto start = std::chrono::steady_clock::now();
        const auto is_late = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > attempts_s;
        };
        for (int number = 1; number <= most_attempts && (number <= least_attempts || !is_late()); ++number) {
            std::string disturbed;
            try {
                last = device.is_gpu() ? attempt(truth, known, roofs, seed, disturbed)
                                       : attempt(truth, KnownSteps(device, roofs.now()), roofs, seed, disturbed);
            } catch (const Unsupported&) {
                if (number == 1) throw;
                break;  // what was seen before counts
            }
            last.attempts = number;
            if (disturbed.empty()) return last;
            always_wrong = always_wrong && last.result == TruthResult::wrong;
            last.why += "; " + disturbed;
            fmt::print(stderr, "{}: attempt {}: {}: {}\n", truth.name, number, name(last.result), last.why);
        }
        last.result = always_wrong ? TruthResult::wrong : TruthResult::cannot_tell;
        return last;
    } catch (const Unsupported& error) {
        return {.truth = std::string(truth.name), .why = error.what()};
    } catch (const Error& error) {
        return {.truth = std::string(truth.name), .result = TruthResult::cannot_tell, .why = error.what()};
    }
}

/// Those of one backend. Throws DeviceError where the machine has none, or explains nothing at all.
void look_at_all(BackendKind backend, const Options& options, std::vector<Judgement>& rows) {
    std::vector<const Truth*> chosen;
    for (const Truth& truth : truths())
        if (truth.backend == backend && is_chosen(truth, options)) chosen.push_back(&truth);
    if (chosen.empty()) return;
    const std::unique_ptr<Device> device = backend == BackendKind::cuda ? make_cuda_device() : make_cpu_device();
    if (device->is_gpu()) keep_parts(*device);
    const DeviceRoofs roofs(*device);
    const KnownSteps known(*device, roofs.now());
    const std::size_t before = rows.size();
    for (const Truth* truth : chosen) {
        const auto start = std::chrono::steady_clock::now();
        rows.push_back(look_at(*truth, known, roofs, options.seed));
        fmt::print(stderr, "{}: {}, {:.1f} s\n{}", truth->name, name(rows.back().result),
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                   rows.back().account);
    }
    const auto unexplained = [](const Judgement& row) {
        return row.result == TruthResult::cannot_tell && row.bound.empty();
    };
    if (std::all_of(rows.begin() + static_cast<std::ptrdiff_t>(before), rows.end(), unexplained))
        throw DeviceError(rows.back().why);
}

ExitCode run(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) return ExitCode::success;
    std::vector<Judgement> rows;
    // A CPU's threads are pinned from the moment that it is a device: the GPU, which has threads of its own, comes
    // first.
    for (const BackendKind backend : {BackendKind::cuda, BackendKind::cpu}) look_at_all(backend, options, rows);
    fmt::print("seed {}\n{}", options.seed, matrix_text(rows));
    if (!options.json.empty()) write_file_atomically(options.json, matrix_json(rows, options.seed).dump(1) + "\n");
    return passes(rows) ? ExitCode::success : ExitCode::failed;
}

}  // namespace
}  // namespace kbench

int main(int argc, char** argv) {
    try {
        return static_cast<int>(kbench::run(argc, argv));
    } catch (const kbench::Error& error) {
        fmt::print(stderr, "truths: {}\n", error.what());
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        fmt::print(stderr, "truths: {}\n", error.what());
        return static_cast<int>(kbench::ExitCode::failed);
    }
}
