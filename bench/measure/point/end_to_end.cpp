// The samples of whole forwards, and the figures that follow from them.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/machine/cpu_share.h"
#include "bench/measure/machine/conditions.h"
#include "bench/measure/point/parts.h"
#include "bench/measure/point/progress.h"
#include "bench/measure/point/sampler.h"
#include "bench/measure/point/stop_signal.h"
#include "bench/profile/condition_sampler.h"
#include "bench/profile/starvation.h"

namespace kbench {
namespace {

/// Counts what was repeated, and warns where the samples that were kept are of a process that lacked its CPUs.
void note_starvation(const PartContext& at, const Sampled& sampled) {
    if (!at.point.conditions.cpu_share) return;
    CpuShare& share = *at.point.conditions.cpu_share;
    share.starved_samples = sampled.starved;
    if (const std::string warning = starvation_warning(share); !warning.empty()) at.warn(warning);
}

}  // namespace

void sample_end_to_end(const PartContext& at, Forward& forward, RoofWatch* roofs) {
    at.begin("measure");
    const PhaseTimer timer(at.point, "measure");
    const std::vector<Measurement> measurements = forward.measurements();
    EndToEnd end_to_end;
    double busy_share = 1;
    for (std::size_t i = 0; i < measurements.size(); ++i) {
        const MeasurementRow& row = row_of(measurements[i].kind);
        at.begin(fmt::format("measure {}", row.name));
        SamplerOptions sampler = at.options.sampler;
        if (i > 0) {
            // Secondary figures: enough samples for a median, without the headline's patience.
            sampler.warm_up_s = 0;
            sampler.min_time_s = 0;
            sampler.time_budget_s = std::min(0.2, sampler.time_budget_s);
        }
        ConditionSampler conditions(at.profiler.machine_state());
        conditions.start();
        const auto throttled = [&conditions] {
            if (StopSignals::asked() != 0) throw Stopped();
            return discards_sample(conditions.throttle_mask_now());
        };
        StarvationWatch watch(at.profiler.machine_state());
        Conditions window;
        double looked_before_s = 0;
        const WindowCalls calls{.begin =
                                    [&] {
                                        if (roofs != nullptr) looked_before_s = roofs->spent_s();
                                        conditions.begin_window();
                                        watch.begin();
                                    },
                                .end = [&] { window = conditions.stop(); },
                                .starved = [&](bool last) { return watch.lacked(last); },
                                .takes_longer =
                                    [&](double all_s, double one_s) {
                                        at.begin(fmt::format("measure {}: {:.3g} s each, {} take {:.3g} s", row.name,
                                                             one_s, fewest_slow_samples, all_s));
                                    }};
        Sampled sampled = sample(watched(measurements[i].chunk, i == 0 ? roofs : nullptr), sampler, throttled, calls);
        if (i == 0) {
            at.point.conditions = std::move(window);
            at.point.conditions.throttled_samples = sampled.throttled;
            at.point.conditions.cpu_share = watch.share(sampled.kept_starved);
            note_starvation(at, sampled);
            at.point.conditions.blocks =
                condition_blocks(sampled.timing.samples_ms, sampled.ended_s, at.point.conditions.readings);
            end_to_end.converged = sampled.converged;
            const std::size_t runs = forward.runs_a_sample();
            end_to_end.runs_per_sample = static_cast<std::int64_t>(runs);
            busy_share = sampled.timed_share * measurements[i].runs_per_sample * static_cast<double>(runs);
            // Probes of roofs keep a device busy, too.
            if (roofs != nullptr && !sampled.ended_s.empty())
                busy_share += (roofs->spent_s() - looked_before_s) / sampled.ended_s.back();
        }
        row.timing(end_to_end) = std::move(sampled.timing);
    }
    const double seconds = end_to_end.latency.summary_ms.median * 1e-3;
    // Models with a sequence length have sequences and tokens, and utterances count as sequences. A decode step has
    // tokens alone. Other models have only FLOP/s.
    const std::optional<std::int64_t> batch = at.point.axes.count("batch"), seq = at.point.seq(),
                                      tokens_each = at.point.tokens_of_sequence();
    const auto sequences = static_cast<double>(batch.value_or(0));
    const double tokens = sequences * static_cast<double>(tokens_each.value_or(0));
    if (batch && seq) end_to_end.sequences_per_s = sequences / seconds;
    if (batch && tokens_each) end_to_end.tokens_per_s = sequences / seconds * static_cast<double>(*tokens_each);
    const auto energy_per = [&](double amount) { return energy_of(at.point.conditions, seconds / amount, busy_share); };
    if (batch && (seq || at.point.axes.count("frames"))) end_to_end.energy_per_sequence_j = energy_per(sequences);
    if (batch && tokens_each) end_to_end.energy_per_token_j = energy_per(tokens);
    at.point.end_to_end = std::move(end_to_end);
}

}  // namespace kbench
