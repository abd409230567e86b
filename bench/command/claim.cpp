// kbench claim: a published figure against physics. Nothing is measured.
#include <fmt/format.h>

#include <cstdio>
#include <functional>

#include "analysis/report/claim.h"
#include "bench/command/claim_options.h"
#include "bench/command/command.h"
#include "bench/command/machine_path.h"
#include "bench/device/console.h"
#include "bench/measure/sweep/point_plans.h"
#include "kbench/error.h"
#include "models/problem.h"

namespace kbench {
namespace {

std::int64_t count_of(const ClaimRequest& request, const ModelAxis& axis) {
    const auto asked = request.at.counts.find(axis.name);
    return asked == request.at.counts.end() ? axis.usual : asked->second;
}

/// The model with every count of its point, or the op with its shape.
std::string what_ran(const ClaimRequest& request) {
    std::string what = request.problem ? fmt::format("{} {}", request.op, request.shape) : request.spec.name;
    for (const ModelAxis& axis : request.spec.axes)
        if (axis.is_count() && is_of_phase(request.at, axis))
            what += fmt::format(", {} {}", axis.name, count_of(request, axis));
    for (const auto& [axis, word] : request.at.words) what += fmt::format(", {} {}", axis, word);
    if (request.direction != "fwd")
        what += request.direction == "train" ? ", a training step" : ", " + request.direction;
    return what;
}

/// The model's axes: of a program that is not known, the variant that moves most. Unfused attention has no backward.
ModelPoint model_point(const ClaimRequest& request) {
    ModelPoint at = request.at;
    if (request.direction == "fwd" && request.spec.axis("attention") != nullptr)
        at.words.emplace("attention", "unfused");
    return at;
}

/// Training, backward and the phases with a cache fuse attention, which another program may not.
std::string fused_in(const ClaimRequest& request) {
    const ModelAxis* attention = request.spec.axis("attention");
    const bool is_fused = attention != nullptr && (request.direction != "fwd" || !is_of_phase(request.at, *attention));
    return is_fused ? "attention in one kernel" : "";
}

/// The model of one pass: a training step with AdamW and, in 16 bits, fp32 master weights, unless it is of one op.
Model model_of(const ClaimRequest& request, Precision precision) {
    if (request.problem) return make_problem_model(*request.problem, 1, 1);
    Point point;
    point.set("precision", name(precision));
    point.set("direction", request.direction);
    if (request.direction == "train") {
        point.set("optimizer", "adamw");
        point.set("master", "fp32");
    }
    try {
        return PointPlans::in_direction(point, request.spec.build(model_point(request)));
    } catch (const Unsupported& error) {
        throw UsageError(fmt::format("--direction {}: {}", request.direction, error.what()));
    }
}

/// The claimed time of a pass over `model`, or what follows from the rate: a decode step makes a token of each
/// sequence.
double seconds_of(const ClaimRequest& request, double flops) {
    if (request.latency_s > 0) return request.latency_s;
    if (request.rate_of == RateOf::flops && flops <= 0)
        throw UsageError(fmt::format("--throughput: {} has no FLOPs; give --latency", request.op));
    if (request.rate_of == RateOf::flops) return flops / request.per_s;
    double items = 1;
    for (const ModelAxis& axis : request.spec.axes)
        if (axis.name == "batch" ||
            (axis.name == "seq" && request.rate_of == RateOf::tokens && is_of_phase(request.at, axis)))
            items *= static_cast<double>(count_of(request, axis));
    return items / request.per_s;
}

}  // namespace

int claim_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedClaim parsed = parse_claim(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const ClaimRequest& request = parsed.request;
    for (const std::string& note : request.spec.notes) say("kbench: {}\n", note);
    std::function<double(double)> seconds;
    if (request.latency_s > 0 || request.per_s > 0) seconds = [&](double flops) { return seconds_of(request, flops); };
    const Claim claim = check_claim({.what = what_ran(request),
                                     .model = [&](Precision precision) { return model_of(request, precision); },
                                     .seconds = seconds,
                                     .devices = request.devices,
                                     .precision = request.precision,
                                     .fused = fused_in(request)},
                                    machine_at(request.machine));
    put_text(request.format == "json" ? claim_json(claim) : written(claim_document(claim), request.format));
    return 0;
}

}  // namespace kbench
