// Rows of provider `native` on the GPU: the loss of speech recognition.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

ProviderOp native_ctc();
ProviderOp native_ctc_gradient();

}  // namespace kbench
