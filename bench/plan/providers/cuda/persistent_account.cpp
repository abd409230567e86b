// Runs each variant of the persistent LSTM on random operands, and reads back its times and clocks.
#include "bench/plan/providers/cuda/persistent_account.h"

#include <algorithm>
#include <vector>

#include "kernels/owned.h"

namespace kbench {
namespace {

using cuda::PersistentLstm, cuda::PersistentVariant;

constexpr int launches = 7;  ///< a median of so few is within 1 %: a launch is some 1,000 us, and nothing else runs

double middle(std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// `clocks` [blocks, phases]: cycles, added up over the steps.
std::vector<StepPhase> phases_of(const std::vector<std::uint64_t>& clocks, double steps) {
    std::vector<StepPhase> phases;
    for (std::size_t phase = 0; phase < cuda::persistent_phases; ++phase) {
        std::vector<double> cycles;  // a step's, by block
        for (std::size_t at = phase; at < clocks.size(); at += cuda::persistent_phases)
            cycles.push_back(static_cast<double>(clocks[at]) / steps);
        const double median = middle(cycles);
        phases.push_back({std::string(cuda::persistent_phase_names[phase]), median, cycles.front(), cycles.back()});
    }
    return phases;
}

}  // namespace

PersistentTimes time_persistent_lstm(const PersistentLstm& layer, const cuda::PersistentDirection& forward,
                                     const cuda::PersistentDirection& reverse, const std::int32_t* lengths,
                                     void* workspace, cudaStream_t stream, int runs) {
    PersistentTimes times{.blocks = cuda::persistent_lstm_clock_blocks(layer)};
    const std::size_t count = layer.variant == PersistentVariant::clocks
                                  ? static_cast<std::size_t>(times.blocks) * cuda::persistent_phases
                                  : 0;
    const cuda::OwnedMemory clocks = cuda::allocate(count * sizeof(std::uint64_t));
    const cuda::OwnedEvent begin = cuda::make_event(), end = cuda::make_event();
    const auto steps = static_cast<double>(layer.shape.steps);
    std::vector<double> us;
    for (int run = -1; run < runs; ++run) {
        KBENCH_CUDA(cudaEventRecord(begin.get(), stream));
        persistent_lstm(layer, forward, reverse, lengths, workspace, stream, static_cast<std::uint64_t*>(clocks.get()));
        KBENCH_CUDA(cudaEventRecord(end.get(), stream));
        const double launch_us = cuda::us_between(begin, end);
        if (run >= 0) us.push_back(launch_us / steps);
    }
    times.us = middle(us);
    times.least_us = us.front();
    if (count == 0) return times;
    std::vector<std::uint64_t> cycles(count);
    KBENCH_CUDA(cudaMemcpy(cycles.data(), clocks.get(), count * sizeof(std::uint64_t), cudaMemcpyDeviceToHost));
    times.phases = phases_of(cycles, steps);
    return times;
}

std::optional<StepAccount> account_of_persistent_lstm(const PersistentLstm& layer,
                                                      const cuda::PersistentDirection& forward,
                                                      const cuda::PersistentDirection& reverse,
                                                      const std::int32_t* lengths, void* workspace,
                                                      cudaStream_t stream) {
    PersistentLstm clocked = layer, single = layer;
    clocked.variant = PersistentVariant::clocks;
    if (!persistent_lstm_unsupported(clocked).empty()) return std::nullopt;
    single.shape.steps = 1;
    const auto timed = [&](const PersistentLstm& variant) {
        return time_persistent_lstm(variant, forward, reverse, lengths, workspace, stream, launches);
    };
    // The launch with all steps comes last, so its results stay.
    const double single_us = timed(single).us;
    const PersistentTimes with_clocks = timed(clocked), plain = timed(layer);
    return StepAccount{.blocks = with_clocks.blocks,
                       .us = with_clocks.us,
                       .start_us = std::max(0.0, single_us - plain.us),
                       .phases = with_clocks.phases};
}

}  // namespace kbench
