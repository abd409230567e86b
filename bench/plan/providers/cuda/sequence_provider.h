// Rows of provider `native` on the GPU: what stands around convolutions and recurrent layers.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

/// Also takes a sum, where channels are columns.
ProviderOp native_batch_norm();
ProviderOp native_hardtanh();
ProviderOp native_time_mask();
ProviderOp native_to_sequence();
ProviderOp native_batch_norm_in_training();
ProviderOp native_batch_norm_backward();
ProviderOp native_hardtanh_backward();
ProviderOp native_time_mask_backward();
ProviderOp native_to_sequence_backward();

}  // namespace kbench
