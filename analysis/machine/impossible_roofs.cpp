// Each roof of all cores is compared with that of one core.
#include "analysis/machine/impossible_roofs.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/machine/ceilings.h"

namespace kbench {
namespace {

const Ceiling* of_one_core(const CeilingRun& run, const Ceiling& all) {
    const auto found = std::ranges::find(run.ceilings, all.name + std::string(one_core_suffix), &Ceiling::name);
    return found == run.ceilings.end() ? nullptr : &*found;
}

/// "83.0 GB/s by 2 threads is more than 2 times the 25.3 GB/s of one core"; empty where it can be.
std::string contradiction(double all, int threads, double one, std::string_view unit) {
    const auto text = [&](std::string_view what) {
        return fmt::format("{:.3g} {} by {} thread{} is {} the {:.3g} {} of one core", all, unit, threads,
                           threads == 1 ? "" : "s", what, one, unit);
    };
    if (all < one * (1 - roof_tolerance)) return text("less than");
    if (all <= threads * one * (1 + roof_tolerance)) return "";
    return text(threads == 1 ? "more than" : fmt::format("more than {} times", threads));
}

}  // namespace

std::vector<ImpossibleRoof> impossible_roofs(const CeilingRun& run) {
    std::vector<ImpossibleRoof> impossible;
    for (const Ceiling& all : run.ceilings) {
        const Ceiling* one = of_one_core(run, all);
        const std::optional<int> threads = all.threads ? all.threads : run.threads;
        if (one == nullptr || !threads || !all.value.value || !one->value.value) continue;
        std::string why = contradiction(*all.value.value, *threads, *one->value.value, ceiling_kind(all.name).unit);
        if (!why.empty()) impossible.push_back({all.name, std::move(why)});
    }
    return impossible;
}

void discard(CeilingRun& run, const std::vector<ImpossibleRoof>& impossible) {
    for (const ImpossibleRoof& roof : impossible) {
        const auto found = std::ranges::find(run.ceilings, roof.ceiling, &Ceiling::name);
        if (found == run.ceilings.end()) continue;
        found->value = Quantity::unavailable("cannot be: " + roof.why);
        found->low = found->high = 0;
    }
}

}  // namespace kbench
