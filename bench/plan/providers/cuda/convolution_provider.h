// kbench's own convolutions on the GPU as a row of `native`.
#pragma once

#include "bench/plan/provider.h"

namespace kbench {

ProviderOp native_conv2d();

}  // namespace kbench
