// The compute capability whose paths kernels take: the current device's, or an older one that a test assumes.
#pragma once

#include <compare>

namespace kbench::cuda {

struct ComputeCapability {
    int major = 0, minor = 0;
    friend auto operator<=>(const ComputeCapability&, const ComputeCapability&) = default;
};

/// For tests: "8.0" makes a newer GPU take the paths of an A100. The build must be for 80-virtual alone, or the GPU
/// would run newer code all the same.
inline constexpr char assumed_capability_variable[] = "KBENCH_ASSUME_CAPABILITY";

/// What that variable says, else `device`. Throws UsageError where it is no capability with known limits, or a newer
/// one than `device`.
ComputeCapability assumed_capability(ComputeCapability device);

/// What the device of CUDA's number `ordinal` has, whatever is assumed.
ComputeCapability own_capability(int ordinal);

/// What is assumed of the current device. Throws DeviceError where there is none.
ComputeCapability compute_capability();

}  // namespace kbench::cuda
