// Times the persistent LSTM's variants, and reads the clocks of the one that has them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kbench/step_account.h"
#include "kernels/recurrent/persistent/persistent.h"

namespace kbench {

/// How long the launches of one variant take, in microseconds for one time step.
struct PersistentTimes {
    double us = 0, least_us = 0;      ///< median and least
    int blocks = 0;                   ///< both directions together
    std::vector<StepPhase> phases{};  ///< the last launch's, where the variant has clocks
};

/// `runs` launches after one that does not count, each with an event before and after it on `stream`, which it waits
/// for. `workspace`: as persistent_lstm asks. Throws as it does.
PersistentTimes time_persistent_lstm(const cuda::PersistentLstm& layer, const cuda::PersistentDirection& forward,
                                     const cuda::PersistentDirection& reverse, const std::int32_t* lengths,
                                     void* workspace, cudaStream_t stream, int runs);

/// Where a step of `layer`, the plain variant, spends its time; nothing where no such kernel has clocks. It writes the
/// same as the plain one. Throws as persistent_lstm does.
std::optional<StepAccount> account_of_persistent_lstm(const cuda::PersistentLstm& layer,
                                                      const cuda::PersistentDirection& forward,
                                                      const cuda::PersistentDirection& reverse,
                                                      const std::int32_t* lengths, void* workspace,
                                                      cudaStream_t stream);

}  // namespace kbench
