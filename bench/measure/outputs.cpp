// What the forward computed, looked at after it was timed.
#include <chrono>

#include <fmt/format.h>

#include "bench/measure/logits.h"
#include "bench/measure/parts.h"
#include "bench/measure/progress.h"
#include "bench/plan/data/npy.h"
#include "models/base/error.h"

namespace kbench {

using Clock = std::chrono::steady_clock;

void check_outputs(const PartContext& at, Forward& forward) {
    const Plan& plan = at.plan;
    at.begin("logits");
    const PhaseTimer timer(at.point, "logits");
    const Operand& all = plan.logits_operand();
    if (const std::int64_t bad = count_not_finite_logits(plan, at.device); bad > 0)
        throw MeasurementError(fmt::format("{} of {} logits are not finite in {}: the times are of no use", bad,
                                           all.rows * all.columns, name(at.point.precision)));
    const Logits logits = Logits::download(plan, at.device, Logits::usual_bytes);
    const auto start = Clock::now();
    for (int repeat = 0; repeat < at.options().logits_repeats; ++repeat) {
        at.begin("logits");
        if (std::chrono::duration<double>(Clock::now() - start).count() > 1) break;  // a slow model: one will do
        forward.chunk();
        const std::string difference = logits.difference(Logits::download(plan, at.device, Logits::usual_bytes));
        if (difference.empty()) continue;
        at.warnings.push_back(fmt::format(
            "{} batch {} seq {} {} {}: {}; a race in a kernel does this, or a library "
            "that adds in no fixed order",
            at.point.model, at.point.batch, at.point.seq, name(at.point.precision), at.point.backend, difference));
        break;
    }
    if (!at.wants.dump_logits) return;
    const Logits whole = Logits::download(plan, at.device, all.bytes());
    write_npy(*at.wants.dump_logits, std::vector<std::int64_t>{at.point.batch, at.point.seq, all.columns}, all.type,
              whole.data(), all.stride);
}

}  // namespace kbench
