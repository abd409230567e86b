// The code for GPUs that a build has, and which of it runs on a GPU. Knows no GPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kbench {

/// Code of a build that a GPU runs.
struct GpuCode {
    int major = 0, minor = 0;
    std::string suffix;   ///< "a" or "f": of this architecture, or its family, alone
    bool machine = true;  ///< SASS; else PTX, which the driver compiles at the first start

    /// "SASS of sm_90a", "PTX of compute_90".
    std::string text() const;
};

/// What a build for `architectures`, CMake's CMAKE_CUDA_ARCHITECTURES with its items apart by commas or semicolons
/// ("80-real,90-real,90-virtual"), runs on a GPU of that compute capability; nothing where it has no code for it. The
/// rules are nvcc's ("GPU Compilation"): SASS runs on its own and on later minor versions of one major version; with an
/// "a" on its own alone, with an "f" as SASS without it does; PTX is compiled for its own and every later version,
/// unless it has a letter.
std::optional<GpuCode> code_for(std::string_view architectures, int major, int minor);
/// All that such a build has: "sm_80, sm_90 and PTX of compute_90".
std::string code_text(std::string_view architectures);

/// The architectures of this build; empty where it has no CUDA.
std::string_view built_architectures();

/// The oldest that the kernels are written for: cp.async, bf16 and tf32 are of 8.0 (Ampere).
inline constexpr int least_compute_capability = 8;

/// Why this build cannot compute on the GPU `name` of that compute capability, and what helps; empty where it can, and
/// where nothing is known of the build's code: loading it tells.
std::string why_no_code(std::string_view architectures, std::string_view name, int major, int minor);

/// Why a GPU of the one capability would not run this build's code of the other, older one, as an assumption of it
/// needs (kernels/compute_capability.h); empty where it would. Of a build's code a GPU takes the newest.
std::string why_not_assumed(std::string_view architectures, int major, int minor, int older_major, int older_minor);

/// Whether kbench's kernels were run on GPUs of that compute capability: "run on H100 and H200", "never run ...".
std::string_view tried_on(int major, int minor);

}  // namespace kbench
