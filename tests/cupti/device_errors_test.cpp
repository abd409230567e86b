// What kbench says of CUDA's errors, against CUDA's own list of them.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <string>

#include "bench/device/gpu_code.h"
#include "bench/device/nvidia.h"

namespace kbench {
namespace {

TEST(CudaErrors, AreNamedByTheirNumbers) {
    EXPECT_EQ(cudaErrorInsufficientDriver, 35);
    EXPECT_EQ(cudaErrorNoDevice, 100);
    for (const CudaErrorAdvice& row : cuda_error_advice())
        EXPECT_EQ(row.name, cudaGetErrorName(static_cast<cudaError_t>(row.error)));
}

TEST(CudaCode, OfThisBuildIsKnown) { EXPECT_NE(code_text(built_architectures()), "no GPU") << built_architectures(); }

}  // namespace
}  // namespace kbench
