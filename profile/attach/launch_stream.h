// The stream that a launch call names.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <optional>

namespace kbench::attach {

/// By the call's parameters, as its name has them; nullptr is the default stream, as it is for the driver. Nothing for
/// a call whose parameters are not known.
std::optional<CUstream> launch_stream(const CUpti_CallbackData& call);

}  // namespace kbench::attach
