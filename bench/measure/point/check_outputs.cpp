// Checks what the model computed, after it was timed.
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "analysis/result/point_name.h"
#include "bench/measure/point/device_rows.h"
#include "bench/measure/point/outputs.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/texts.h"
#include "bench/plan/data/npy.h"
#include "kbench/error.h"

namespace kbench {

using Clock = std::chrono::steady_clock;

static void check_finite(const PartContext& at, TensorId id) {
    const Operand& all = at.plan.operand(id);
    const std::optional<std::int64_t> wrong_losses = count_wrong_losses(at, id);
    const std::int64_t bad = wrong_losses ? *wrong_losses : count_not_finite(at.plan, id, at.device);
    if (bad > 0)
        throw MeasurementError(fmt::format("{} of {} {} are not finite in {}: the times are of no use", bad,
                                           all.rows * all.columns, at.plan.model().tensors[id].name,
                                           name(at.point.precision())));
}

/// Rows of every output and of every gradient of a weight, as the last run left them.
static std::vector<OutputRows> download(const PartContext& at) {
    const Model& model = at.plan.model();
    std::vector<OutputRows> results;
    for (const TensorId id : model.outputs)
        results.push_back(OutputRows::download(at.plan, id, at.device, OutputRows::usual_bytes));
    for (const auto& [weight, gradient] : model.gradients) {
        const auto share = OutputRows::usual_bytes / 16 / static_cast<std::int64_t>(model.gradients.size());
        results.push_back(OutputRows::download(at.plan, gradient, at.device, share));
    }
    return results;
}

/// Compares repeated runs bit by bit: a race that strikes one row in some runs passes every check of single steps.
static void check_repeats(const PartContext& at, Forward& forward) {
    const std::vector<OutputRows> first = download(at);
    const auto start = Clock::now();
    for (int repeat = 0; repeat < at.options.output_repeats; ++repeat) {
        at.begin("outputs");
        if (std::chrono::duration<double>(Clock::now() - start).count() > 1) break;  // a slow model: one will do
        forward.chunk();
        const std::vector<OutputRows> again = download(at);
        for (std::size_t i = 0; i < first.size(); ++i) {
            const std::string difference = first[i].difference(again[i]);
            if (difference.empty()) continue;
            at.warnings.push_back(
                fmt::format("{}: {}; a race in a kernel does this, or a library that adds in no fixed order",
                            placed_name(at.point), difference));
            return;
        }
    }
}

static void check_gradients(const PartContext& at) {
    for (const auto& [weight, gradient] : at.plan.model().gradients)
        if (const std::int64_t bad = count_not_finite(at.plan, gradient, at.device); bad > 0)
            throw MeasurementError(fmt::format("{} of {} numbers of the gradient of {} are not finite in {}{}", bad,
                                               at.plan.model().tensors[gradient].elements(),
                                               at.plan.model().tensors[weight].name, name(at.point.precision()),
                                               at.point.precision() == Precision::fp16
                                                   ? "; a smaller loss_scale may help (--input loss_scale=FILE)"
                                                   : ""));
}

/// What cannot be written is a failure of the point, which keeps its figures; a mistake on the command line would end
/// the run without it.
static void kept_point(const std::function<void()>& write) {
    try {
        write();
    } catch (const UsageError& error) {
        throw MeasurementError(error.what());
    }
}

static void dump_gradients(const PartContext& at) {
    std::vector<SafetensorsTensor> tensors;
    for (const auto& [weight, gradient] : at.plan.model().gradients)
        tensors.push_back(tensor_on(at.device, at.plan.address(gradient), at.plan.operand(gradient),
                                    at.plan.model().tensors[weight]));
    write_safetensors(at.dump_gradients, tensors);
}

void check_outputs(const PartContext& at, Forward& forward) {
    const Model& model = at.plan.model();
    at.begin("outputs");
    const PhaseTimer timer(at.point, "logits");  // the phase's name in results of all versions
    for (const TensorId id : model.outputs) {
        check_finite(at, id);
        const Tensor& tensor = model.tensors[id];
        const auto dump = at.dumps.find(tensor.name);
        if (dump == at.dumps.end()) continue;
        const Operand& all = at.plan.operand(id);
        const OutputRows whole = OutputRows::download(at.plan, id, at.device, all.bytes());
        kept_point([&] { write_npy(dump->second, tensor.shape, all.type, whole.data(), all.stride); });
    }
    check_gradients(at);
    check_repeats(at, forward);
    if (!at.dump_gradients.empty()) kept_point([&] { dump_gradients(at); });
}

}  // namespace kbench
