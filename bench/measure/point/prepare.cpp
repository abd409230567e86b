// From a plan to a forward that is right and ready to be timed.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/texts.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/data/inputs.h"

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

std::filesystem::path PartContext::file_of(TensorId input) const {
    const auto file = inputs.find(plan.model().tensors[input].name);
    return file == inputs.end() ? std::filesystem::path() : file->second;
}

void load(const PartContext& at) {
    at.begin("weights");
    const PhaseTimer timer(at.point, "weights");
    at.plan.allocate(at.device, at.weights);
    for (const TensorId id : at.plan.model().given()) {
        const bool is_filled = at.plan.model().tensors[id].resident;  // random, unless a file gives it
        if (is_text_of_file(at, id) || (is_filled && at.file_of(id).empty())) continue;
        const Tensor& tensor = at.plan.model().tensors[id];
        at.plan.set_input(id, input_bytes(tensor, at.plan.operand(id), at.file_of(id), at.options.seed));
    }
    load_texts(at);
}

std::unique_ptr<Forward> prepare(const PartContext& at) {
    at.begin("prepare");
    const PhaseTimer timer(at.point, "prepare");
    return std::make_unique<Forward>(at.plan, at.device, at.profiler);
}

}  // namespace kbench
