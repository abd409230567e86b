// Recurrent layers, step by step or with resident weights, as rows of `native`.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

ProviderOp lstm_row();
ProviderOp gru_row();
ProviderOp rnn_row();

}  // namespace kbench
