// kbench's own convolutions on the GPU as rows of `native`.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

ProviderOp native_conv2d();
ProviderOp native_conv2d_dgrad();
ProviderOp native_conv2d_wgrad();

}  // namespace kbench
