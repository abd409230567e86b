#include "kernels/check.h"

#include "kbench/error.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

TEST(Check, AFailedCallIsNotBlamedOnTheNextLaunch) {
    KBENCH_NEEDS_DEVICE();
    EXPECT_THROW(KBENCH_CUDA(cudaSetDevice(1 << 20)), DeviceError);
    EXPECT_NO_THROW(KBENCH_CUDA_LAUNCHED("a kernel"));
}

}  // namespace
}  // namespace kbench::test
