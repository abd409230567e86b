// The bridge to Google Benchmark. It decides how often a benchmark is called and asks for a number of iterations;
// kbench's sampler takes as many samples or more in that call and gives their median as the time of an iteration.
#include "bench/micro/benchmarks.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <regex>
#include <sstream>

#include "analysis/facts/counters.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/micro/columns.h"
#include "bench/micro/reporters.h"
#include "kbench/error.h"

namespace kbench {
namespace {

void set_columns(benchmark::State& state, const MicroSession& session, const MicroFigures& figures,
                 std::span<const std::string> metrics) {
    const StepResult& step = session.point().steps.front();
    for (const MicroColumn& column : micro_columns())
        if (const std::optional<double> value = column.value(figures))
            state.counters[std::string(column.name)] = *value;
    for (const std::string& metric : metrics)
        if (const auto counted = counter_named(step, metric)) state.counters[metric] = *counted;
    std::string label = step.implementation;
    if (!figures.roof.empty()) label += fmt::format("; roof {}", figures.roof);
    // A GPU's samples are launches of many runs in any case.
    if (session.point().backend() == "cpu" && session.runs_a_sample() > 1)
        label += fmt::format("; {} runs a sample", session.runs_a_sample());
    state.SetLabel(label);
}

void run_case(benchmark::State& state, MicroSession& session, const MicroCase& micro,
              std::span<const std::string> metrics, BenchmarksEnd& end) {
    try {
        const MicroFigures figures = session.measure(micro, [&] {
            const std::size_t runs = session.planned_runs(static_cast<std::size_t>(state.max_iterations));
            // One round, which counts as so many iterations: SetIterationTime is of all of them together.
            while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(runs)))
                state.SetIterationTime(session.sample(runs) * static_cast<double>(runs));
        });
        set_columns(state, session, figures, metrics);
    } catch (const Unsupported& reason) {
        if (session.device_is_lost()) end.device_lost = fmt::format("{}: {}", micro.name(), reason.what());
        state.SkipWithError(reason.what());
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        const std::string wrong = fmt::format("{}: {}", micro.name(), error.what());
        if (end.first_wrong.empty()) end.first_wrong = wrong;
        if (session.device_is_lost()) end.device_lost = wrong;
        state.SkipWithError(error.what());
    }
}

constexpr std::string_view filter_option = "--benchmark_filter=";
constexpr std::string_view list_option = "--benchmark_list_tests";

}  // namespace

bool lists_only(const std::vector<std::string>& arguments) {
    bool lists = false;
    for (const std::string& argument : arguments)
        if (argument.starts_with(list_option))
            lists = !argument.ends_with("=false") && !argument.ends_with("=0") && !argument.ends_with("=no");
    return lists;
}

std::vector<MicroCase> filter_cases(std::vector<MicroCase> cases, std::vector<std::string>& arguments) {
    std::string filter;
    std::erase_if(arguments, [&](const std::string& argument) {
        if (!argument.starts_with(filter_option)) return false;
        filter = argument.substr(filter_option.size());
        return true;
    });
    if (filter.empty() || filter == "all") return cases;
    const bool inverted = filter.starts_with('-');
    const std::size_t all = cases.size();
    try {
        const std::regex expression(filter.substr(inverted ? 1 : 0), std::regex::extended);
        std::erase_if(cases,
                      [&](const MicroCase& micro) { return std::regex_search(micro.name(), expression) == inverted; });
    } catch (const std::regex_error& error) {
        throw UsageError(fmt::format("{}{}: no regular expression: {}", filter_option, filter, error.what()));
    }
    if (cases.empty())
        throw UsageError(
            fmt::format("{}{}: matches none of {} benchmarks; {} shows them", filter_option, filter, all, list_option));
    return cases;
}

BenchmarksEnd run_benchmarks(MicroSession& session, std::span<const MicroCase> cases,
                             std::vector<std::string> arguments, std::span<const std::string> metrics,
                             const std::map<std::string, std::string>& context, std::optional<std::size_t> width,
                             const std::function<void()>& finished) {
    RowColumns columns{micro_column_names(true, true), micro_column_names(session.counts(), session.has_clock())};
    for (std::vector<std::string>* names : {&columns.possible, &columns.expected})
        names->insert(names->end(), metrics.begin(), metrics.end());
    const auto display = make_display_reporter(arguments, columns, session.result(), width);
    BenchmarksEnd end;
    end.file = out_file(arguments);
    std::ostringstream text;
    const auto file = make_file_reporter(arguments, columns, session.result(), text);
    // Google Benchmark would open the file itself; it is written whole at the end.
    arguments.push_back(fmt::format("--benchmark_out={}", file ? "/dev/null" : ""));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    int argc = static_cast<int>(argv.size());
    benchmark::Initialize(&argc, argv.data());
    if (argc > 1) throw UsageError(fmt::format("{}: Google Benchmark knows no such option", argv[1]));
    for (const auto& [key, value] : context) benchmark::AddCustomContext(key, value);
    for (const MicroCase& micro : cases)
        benchmark::RegisterBenchmark(micro.name().c_str(), [&, metrics](benchmark::State& state) {
            const char* why_not = StopSignals::asked() != 0  ? "not run: stopped before it"
                                  : !end.device_lost.empty() ? "not run: the device was lost before it"
                                                             : nullptr;
            if (why_not != nullptr) {
                state.SkipWithError(why_not);
                return;
            }
            run_case(state, session, micro, metrics, end);
            finished();
        })->UseManualTime();
    benchmark::RunSpecifiedBenchmarks(display.get(), file.get());
    benchmark::ClearRegisteredBenchmarks();
    end.text = text.str();
    return end;
}

}  // namespace kbench
