// kbench study: four questions about a model on this machine, answered in one report.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "analysis/machine/ceilings.h"
#include "bench/command/command.h"
#include "bench/command/measure_and_report.h"
#include "bench/command/study/study_options.h"
#include "bench/device/console.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/store/result_files.h"
#include "bench/measure/study/budget.h"
#include "bench/measure/study/plan.h"
#include "bench/measure/sweep/planning.h"
#include "bench/measure/sweep/point_plans.h"
#include "bench/plan/device_support.h"
#include "kbench/error.h"
#include "models/cost.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// FLOPs of a run of the point over the roof of its precision, as a multiple of what fp32's roof takes; where one of
/// them is not known, by the width of an element. 0 of a precision that the device does not have.
double work_of(const PointPlans& plans, const Device& device, const Point& point, std::int64_t batch,
               const Result& result) {
    if (!unsupported(device, point.precision()).empty()) return 0;
    const Model model = plans.model(point, batch);
    double flops = 0;
    for (std::size_t i = model.untimed_ops; i < model.ops.size(); ++i)
        flops += step_cost(model, {i}, point.precision()).flops;
    const Roofs roofs(result.ceilings, point.backend());
    const std::optional<Roof> roof = roofs.matrix(point.precision()), usual = roofs.matrix(Precision::fp32);
    if (roof && usual) return flops * usual->per_s / roof->per_s;
    return flops * static_cast<double>(size_of(storage_type(point.precision()))) / size_of(DataType::fp32);
}

/// Chooses the study's points, once the device is known.
std::unique_ptr<PointGate> prepare_study(StudyRequest& request, Device& device, Result& result,
                                         StudyGate::Clock::time_point start) {
    RunOptions& run = request.run;
    // In which precision products ran, and without pipes of kernels that issue much nobody can tell what binds them.
    if (device.is_gpu() && !run.counters.required && !run.counters.sets.empty())
        run.counters.sets = {"core", "tensor", "pipes"};
    const StudyBase base = study_base(request, device.is_gpu());
    const auto plans = std::make_shared<PointPlans>(run, device);
    const std::vector<StudyPoint> first = plan_study(run, base, 0, false);
    const Point forward = unmeasured_point(run, device, first.front().spec);
    const std::int64_t largest = plans->announced_largest(forward, plannable_bytes(device));
    if (largest == 0)
        throw UsageError(
            fmt::format("{} does not fit into memory, not even at batch 1: nothing can be studied", run.model.name));
    std::vector<StudyPoint> points = plan_study(run, base, largest, plans->model(forward, 1).loss.has_value());
    run.listed.emplace();
    for (const StudyPoint& point : points) run.listed->push_back(point.spec);
    result.study = recorded_plan(run, device, points, run.points(), request.budget_s);
    say("kbench: a study of {} points{}\n", run.points().size(),
        request.budget_s ? ", within " + rough_time(*request.budget_s) : "");
    const auto work = [&run, &device, &result, plans, largest](const PointSpec& spec) {
        const Point point = unmeasured_point(run, device, spec);
        return work_of(*plans, device, point, point.batch_is_max ? largest : point.batch(), result);
    };
    return std::make_unique<StudyGate>(std::move(points), *result.study, work, start,
                                       [](const std::string& forecast) { say("kbench: {}\n", forecast); });
}

int redraw(const fs::path& directory, const fs::path& out) {
    const ResultFile file = read_result(directory.string());
    if (!file.result.study)
        throw UsageError(
            fmt::format("--redraw {}: {} is no study; `kbench report` draws it", directory.string(), file.path));
    const fs::path into = report_directory(out.string(), file);
    refuse_other_reports(into, {&file.result.environment, 1});
    const ExplainedResult explained(file.result);
    write_reports(into, explained);
    say("wrote {}/report.html, report.md and trace.json\n", into.string());
    return tell_impossible(explained.impossible(), file.path);
}

}  // namespace

int study_command(const std::vector<std::string>& arguments, const std::string& command_line) {
    const StudyGate::Clock::time_point start = StudyGate::Clock::now();
    ParsedStudy parsed = parse_study(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    StudyRequest& request = parsed.request;
    if (!request.redraw.empty()) return redraw(request.redraw, request.run.out);
    return measure_and_report(request, command_line, [&](Device& device, Result& result) {
        return prepare_study(request, device, result, start);
    });
}

}  // namespace kbench
