// The bridge to Google Benchmark. It decides how often a benchmark is called and asks for a number of iterations;
// kbench's sampler takes as many samples or more in that call and gives their median as the time of an iteration.
#include "bench/micro/benchmarks.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/micro/columns.h"
#include "models/error.h"

namespace kbench {
namespace {

void set_columns(benchmark::State& state, const MicroSession& session, const MicroFigures& figures,
                 std::span<const std::string> metrics) {
    const Point& point = session.point();
    for (const MicroColumn& column : micro_columns())
        if (const std::optional<double> value = column.value(figures))
            state.counters[std::string(column.name)] = *value;
    for (const std::string& metric : metrics)
        if (const auto found = point.steps.front().counters.find(metric); found != point.steps.front().counters.end())
            state.counters[metric] = found->second;
    std::string label = point.steps.front().implementation;
    if (!figures.roof.empty()) label += fmt::format(" | roof {}", figures.roof);
    state.SetLabel(label);
}

void run_case(benchmark::State& state, MicroSession& session, const MicroCase& micro,
              std::span<const std::string> metrics, MicroOutcome& outcome) {
    try {
        session.prepare(micro);
        const std::size_t samples = session.planned_samples(static_cast<std::size_t>(state.max_iterations));
        const auto runs = static_cast<benchmark::IterationCount>(samples * session.runs_a_sample());
        // One round, which counts as so many iterations: SetIterationTime is of all of them together.
        while (state.KeepRunningBatch(runs))
            state.SetIterationTime(session.sample(samples) * static_cast<double>(runs));
        set_columns(state, session, session.finish(), metrics);
    } catch (const Unsupported& reason) {
        state.SkipWithError(reason.what());
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        if (outcome.first_wrong.empty()) outcome.first_wrong = fmt::format("{}: {}", micro.name(), error.what());
        state.SkipWithError(error.what());
    }
}

}  // namespace

MicroOutcome run_benchmarks(MicroSession& session, std::span<const MicroCase> cases, std::vector<std::string> arguments,
                            std::span<const std::string> metrics, const std::function<void()>& finished) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    int argc = static_cast<int>(argv.size());
    benchmark::Initialize(&argc, argv.data());
    if (argc > 1) throw UsageError(fmt::format("{}: Google Benchmark knows no such option", argv[1]));
    MicroOutcome outcome;
    for (const MicroCase& micro : cases)
        benchmark::RegisterBenchmark(micro.name().c_str(), [&, metrics](benchmark::State& state) {
            run_case(state, session, micro, metrics, outcome);
            finished();
        })->UseManualTime();
    outcome.run = benchmark::RunSpecifiedBenchmarks();
    benchmark::ClearRegisteredBenchmarks();
    return outcome;
}

}  // namespace kbench
