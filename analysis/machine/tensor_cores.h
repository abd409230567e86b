// What drives the tensor cores of each compute capability. A new chip with instructions that are known is a row here;
// new instructions are also a family, kernels that use them and a probe of their roof.
#pragma once

#include <span>
#include <string_view>

#include "kbench/precision.h"

namespace kbench {

struct GpuInfo;

enum class TensorFamily { mma_sync, wgmma, tcgen05, unknown };

/// The instructions by which products are fastest on some compute capabilities.
struct TensorCores {
    TensorFamily family;
    std::string_view instruction;
    int last;                               ///< capability, 10 major + minor; the first is behind the row before
    std::span<const Precision> precisions;  ///< whose products are fastest by it; others have mma.sync
    std::string_view build_target;          ///< CMake's architecture that its kernels are compiled for; "": any
    bool has_probe;                         ///< whether kbench measures its roof
};

/// The row of a GPU's capability. 12.x has mma.sync alone, as all before 9.0 (PTX ISA, "tcgen05 instructions"); what
/// newer ones have is not known.
const TensorCores& tensor_cores(int capability_major, int capability_minor);
const TensorCores& tensor_cores(const GpuInfo& gpu);

std::span<const TensorCores> tensor_core_table();

}  // namespace kbench
