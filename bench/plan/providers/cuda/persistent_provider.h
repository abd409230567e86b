// The persistent LSTM as a row of `native`.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

/// Takes what fits on the SMs at once (kernels/recurrent/persistent/persistent.h); other rows have the rest.
ProviderOp persistent_lstm_row(const ProviderContext& context);

}  // namespace kbench
