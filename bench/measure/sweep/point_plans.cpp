// Builds a point's model, assigns its steps, and finds the largest batch whose plan fits in memory.
#include "bench/measure/sweep/point_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/result/merge.h"
#include "bench/measure/sweep/planning.h"
#include "bench/plan/device_support.h"
#include "kbench/error.h"
#include "models/backward.h"

namespace kbench {
namespace {

/// Gradients of a mean over thousands of tokens are 0 in fp16, and products of zeros run faster than others. `kbench
/// train` finds a scale of its own.
double loss_scale_of(const Model& forward, Precision precision) {
    if (precision != Precision::fp16 || !forward.loss) return 1;
    const OpKind& kind = forward.loss->op.kind();
    if (kind.loss == nullptr)
        throw Unsupported(fmt::format("{} in fp16: it says no scale of its gradients", kind.name));
    return kind.loss->fp16_scale;
}

}  // namespace

Point unmeasured_point(const RunOptions& options, const Device& device, const PointSpec& spec) {
    Point point;
    point.axes = spec.axes;
    point.set("model", options.model.name);
    point.set("backend", name(device.kind()));
    point.batch_is_max = point.axes.count("batch") == max_batch;
    if (point.batch_is_max) point.set("batch", 1);
    point.seed = options.seed;
    return point;
}

PointPlans::PointPlans(const RunOptions& options, Device& device)
    : options_(options),
      device_(device),
      providers_(
          make_providers(device.kind(), ProviderContext{.algorithm_cache = options.cache_directory / "cublaslt.json",
                                                        .retune = options.retune,
                                                        .deterministic = options.deterministic,
                                                        .multiprocessors = device.multiprocessors(),
                                                        .stream = device.stream()})) {}

ModelPoint PointPlans::model_point(const Point& point, std::int64_t batch) const {
    ModelPoint at;
    for (const ModelAxis& axis : options_.model.axes) {
        if (!axis.changes_shapes()) continue;
        if (!axis.is_count())
            at.words[std::string(axis.name)] = point.axes.text(axis.name);
        else if (const auto count = point.axes.count(axis.name))
            at.counts[std::string(axis.name)] = *count;
    }
    at.counts["batch"] = batch;
    return at;
}

Model PointPlans::model(const Point& point, std::int64_t batch) const {
    return in_direction(point, options_.model.build(model_point(point, batch)));
}

Model PointPlans::in_direction(const Point& point, Model forward) {
    const std::string& direction = point.axes.text("direction");
    const bool sixteen_bits = size_of(storage_type(point.precision())) == 2;
    const TrainingOptions training{.adamw = point.axes.text("optimizer") == "adamw",
                                   .master = sixteen_bits && point.axes.text("master") == "fp32",
                                   .recompute = point.axes.text("recompute") == "block",
                                   .loss_scale = loss_scale_of(forward, point.precision())};
    if (direction == "bwd") return backward_alone(std::move(forward), training);
    if (direction == "train") return with_backward(std::move(forward), training);
    return forward;
}

std::vector<AssignedStep> PointPlans::assign(const Model& model, Precision precision) const {
    return assign_steps(model, precision, providers_, options_.providers, column_multiple(device_, precision));
}

std::optional<std::int64_t> PointPlans::planned_bytes(const Point& point, std::int64_t batch) const {
    try {
        const Model at = model(point, batch);
        return needed_bytes(at, Plan(at, point.precision(), assign(at, point.precision())).layout(), device_);
    } catch (const DeviceError&) {
        return std::nullopt;
    }
}

std::int64_t PointPlans::announced_largest(const Point& point, std::int64_t available) const {
    return largest_batch(
        [&](std::int64_t batch) {
            const Model at = model(point, batch);
            const Layout layout = estimate_layout(at, point.precision(), assign(at, point.precision()));
            return needed_bytes(at, layout, device_);
        },
        available);
}

std::int64_t PointPlans::largest(const Point& point, std::int64_t available) const {
    const std::int64_t announced = announced_largest(point, available);
    std::int64_t fits = 0, over = announced + 1;
    for (std::int64_t next = announced; over - fits > 1;) {
        const std::optional<std::int64_t> bytes = planned_bytes(point, next);
        (bytes && *bytes <= available ? fits : over) = next;
        if (fits == announced || over - fits == 1) break;
        // First in proportion, which is nearly right, then between the two.
        const double share = bytes ? static_cast<double>(available) / static_cast<double>(*bytes) : max_batch_step;
        next = fits == 0 ? static_cast<std::int64_t>(static_cast<double>(next) * share) : fits + (over - fits) / 2;
        next = std::clamp(next, fits + 1, over - 1);
    }
    return fits;
}

std::vector<std::string> PointPlans::warnings() const {
    std::vector<std::string> all;
    for (const auto& provider : providers_)
        if (provider->warnings) add_once(all, provider->warnings());
    return all;
}

}  // namespace kbench
