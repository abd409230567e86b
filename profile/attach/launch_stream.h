// The stream that a launch call names.
#pragma once

#include <cuda.h>
#include <cupti.h>

namespace kbench::attach {

/// By the call's parameters, as its name has them; nullptr is the default stream, as it is for the driver. `is_known`
/// is false for a call whose parameters are not.
CUstream launch_stream(const CUpti_CallbackData& call, bool& is_known);

}  // namespace kbench::attach
