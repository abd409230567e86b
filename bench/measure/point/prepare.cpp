// From a plan to a forward that is right and ready to be timed.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/texts.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/data/inputs.h"
#include "models/ops/ctc.h"

namespace kbench {

using Clock = std::chrono::steady_clock;

void verify(const PartContext& at) {
    if (!at.options.verify) return;
    if (at.verified) {
        at.point.verification = *at.verified;
        return;
    }
    const Plan& plan = at.plan;
    const PhaseTimer timer(at.point, "verify");
    const auto start = Clock::now();
    std::vector<const Computation*> seen;
    for (std::size_t s = 0; s < plan.steps().size(); ++s) {
        const PlannedStep& planned = plan.steps()[s];
        if (std::find(seen.begin(), seen.end(), planned.computation.get()) != seen.end()) continue;
        seen.push_back(planned.computation.get());
        at.begin(fmt::format("verify {} {}", op_name(planned.step), shape_text(planned.step)));
        const VerifyTarget target{&planned.step, planned.computation.get(), std::string(planned.provider->name),
                                  plan.model().ops[planned.naming_op].layer};
        at.point.verification.steps.push_back(verify_step(target, at.point.precision(), at.device, at.options.seed));
    }
    at.point.verification.seconds = std::chrono::duration<double>(Clock::now() - start).count();
}

static std::filesystem::path file_of(const PartContext& at, const std::string& input) {
    const auto file = at.inputs.find(input);
    return file == at.inputs.end() ? std::filesystem::path() : file->second;
}

/// The texts of `node`, a Ctc op, from their file where there is one; and which utterances they do not fit.
static void load_texts(const PartContext& at, const OpNode& node) {
    const Model& model = at.plan.model();
    const TensorId targets = node.inputs.at(2), ends = node.inputs.at(3);
    const std::filesystem::path file = file_of(at, model.tensors[targets].name);
    if (!file.empty()) {
        const std::vector<std::byte> bytes = input_bytes(model.tensors[ends], at.plan.operand(ends),
                                                         file_of(at, model.tensors[ends].name), at.options.seed);
        std::vector<std::int32_t> lengths(bytes.size() / sizeof(std::int32_t));
        std::memcpy(lengths.data(), bytes.data(), bytes.size());
        const std::vector<std::int32_t> texts = read_texts(file, model.tensors[targets], lengths);
        refuse_blanks(file, texts, model.tensors[targets].columns(), lengths);
        at.plan.set_input(targets, std::as_bytes(std::span(texts)));
    }
    if (const std::size_t without = without_alignment(node, at.plan, at.device).size(); without > 0)
        at.warn(fmt::format(
            "{} of {} utterances have more labels, and blanks between equal ones, than steps: their loss is infinite and their gradient 0",
            without, node.op.get_if<Ctc>()->batch));
}

/// Whether load_texts reads it.
static bool is_text_of_file(const PartContext& at, TensorId id) {
    return std::ranges::any_of(at.plan.model().ops, [&](const OpNode& node) {
        return node.op.is<Ctc>() && node.inputs.at(2) == id && !file_of(at, at.plan.model().tensors[id].name).empty();
    });
}

void load(const PartContext& at) {
    at.begin("weights");
    const PhaseTimer timer(at.point, "weights");
    at.plan.allocate(at.device, at.weights);
    for (const TensorId id : at.plan.model().inputs) {
        if (is_text_of_file(at, id)) continue;
        const Tensor& tensor = at.plan.model().tensors[id];
        at.plan.set_input(id, input_bytes(tensor, at.plan.operand(id), file_of(at, tensor.name), at.options.seed));
    }
    for (const OpNode& node : at.plan.model().ops)
        if (node.op.is<Ctc>()) load_texts(at, node);
}

std::unique_ptr<Forward> prepare(const PartContext& at) {
    at.begin("prepare");
    const PhaseTimer timer(at.point, "prepare");
    return std::make_unique<Forward>(at.plan, at.device, at.profiler);
}

}  // namespace kbench
