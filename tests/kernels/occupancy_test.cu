// The occupancy calculator of analysis/ against NVIDIA's two: the toolkit's header, on every architecture of the table
// and without a device, and the driver's answer for real kernels on the device that is here.
#include "analysis/machine/occupancy.h"

#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kbench/error.h"
#include "kernels/check.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

/// Blocks an SM, or 0 for a launch that is refused.
int blocks_per_sm(const DeviceLimits& device, const LaunchShape& launch) {
    try {
        return theoretical_occupancy(device, launch).blocks_per_sm;
    } catch (const UsageError&) {
        return 0;
    }
}

cudaOccDeviceProp as_the_toolkit_wants_it(const DeviceLimits& device) {
    cudaOccDeviceProp properties;
    properties.computeMajor = device.compute_capability_major;
    properties.computeMinor = device.compute_capability_minor;
    properties.maxThreadsPerBlock = device.max_threads_per_block;
    properties.maxThreadsPerMultiprocessor = device.max_warps_per_sm * device.warp_size;
    properties.regsPerBlock = device.max_registers_per_block;
    properties.regsPerMultiprocessor = device.registers_per_sm;
    properties.warpSize = device.warp_size;
    properties.sharedMemPerBlock = 48 << 10;
    properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(device.shared_bytes_per_sm);
    properties.numSms = 1;
    properties.sharedMemPerBlockOptin = static_cast<std::size_t>(device.max_shared_bytes_per_block);
    properties.reservedSharedMemPerBlock = static_cast<std::size_t>(device.reserved_shared_bytes_per_block);
    return properties;
}

TEST(OccupancyWithoutDevice, AgreesWithTheToolkitOnEveryArchitecture) {
    int cases = 0;
    for (const DeviceLimits& device : known_architectures) {
        // Earlier toolkits do not know, or gave other limits for, what came after 9.0.
        if (CUDART_VERSION < 13000 && device.compute_capability_major > 9) continue;
        const cudaOccDeviceProp properties = as_the_toolkit_wants_it(device);
        for (const int threads : {1, 32, 33, 64, 96, 128, 160, 192, 256, 288, 384, 500, 512, 640, 768, 896, 1024})
            for (int registers = 0; registers <= 255; ++registers)
                for (const int bytes : {0, 1, 1000, 3072, 3073, 16384, 48000, 65536, 76801, 101376, 115712, 232448})
                    for (const int barriers : {0, 1, 5, 16}) {
                        cudaOccFuncAttributes attributes;
                        attributes.maxThreadsPerBlock = device.max_threads_per_block;
                        attributes.numRegs = registers;
                        attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
                        attributes.maxDynamicSharedSizeBytes = static_cast<std::size_t>(bytes);
                        attributes.numBlockBarriers = barriers;
                        const cudaOccDeviceState state;
                        cudaOccResult expected;
                        ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &properties, &attributes, &state,
                                                                          threads, static_cast<std::size_t>(bytes)),
                                  CUDA_OCC_SUCCESS);
                        LaunchShape launch;
                        launch.block_threads = threads;
                        launch.registers_per_thread = registers;
                        launch.dynamic_shared_bytes = bytes;
                        launch.barriers = barriers;
                        ASSERT_EQ(blocks_per_sm(device, launch), expected.activeBlocksPerMultiprocessor)
                            << "sm_" << device.compute_capability_major << device.compute_capability_minor << ", "
                            << threads << " threads, " << registers << " registers, " << bytes << " bytes, " << barriers
                            << " barriers";
                        ++cases;
                    }
    }
    EXPECT_GT(cases, 1000000);
}

/// Keeps `live` values in registers across a barrier, so that the compiler allots somewhat more than that many. A
/// thread's values are contiguous, for one address; a stride would take registers for an address each.
template <int live>
__global__ void hold_registers(float* data) {
    extern __shared__ float dynamic[];
    float values[live];
#pragma unroll
    for (int i = 0; i < live; ++i) values[i] = data[threadIdx.x * live + i];
    if (threadIdx.x == 0) dynamic[0] = values[0];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < live; ++i) data[threadIdx.x * live + i] = values[live - 1 - i] * dynamic[0];
}

/// Static shared memory, which adds to the dynamic.
__global__ void hold_static_shared_memory(float* data) {
    __shared__ float tile[5000];
    extern __shared__ float dynamic[];
    tile[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x == 0) dynamic[0] = data[0];
    __syncthreads();
    data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x] * dynamic[0];
}

struct NamedKernel {
    const char* name;
    void (*function)(float*);
};

const NamedKernel kernels[] = {
    {"hold_registers<4>", hold_registers<4>},
    {"hold_registers<28>", hold_registers<28>},
    {"hold_registers<50>", hold_registers<50>},
    {"hold_registers<90>", hold_registers<90>},
    {"hold_registers<150>", hold_registers<150>},
    {"hold_registers<220>", hold_registers<220>},
    {"hold_static_shared_memory", hold_static_shared_memory},
};

class OccupancyOnDevice : public ::testing::Test {
  protected:
    void SetUp() override {
        KBENCH_NEEDS_DEVICE();
        KBENCH_CUDA(cudaGetDeviceProperties(&properties_, 0));
        const auto limits = device_limits(properties_.major, properties_.minor, properties_.multiProcessorCount);
        if (!limits)
            GTEST_SKIP() << "sm_" << properties_.major << properties_.minor << " is not in the table of architectures";
        limits_ = *limits;
    }

    cudaDeviceProp properties_{};
    DeviceLimits limits_;
};

TEST_F(OccupancyOnDevice, TableHasTheLimitsThatTheDeviceReports) {
    EXPECT_EQ(limits_.warp_size, properties_.warpSize);
    EXPECT_EQ(limits_.max_threads_per_block, properties_.maxThreadsPerBlock);
    EXPECT_EQ(limits_.max_warps_per_sm * limits_.warp_size, properties_.maxThreadsPerMultiProcessor);
    EXPECT_EQ(limits_.max_blocks_per_sm, properties_.maxBlocksPerMultiProcessor);
    EXPECT_EQ(limits_.registers_per_sm, properties_.regsPerMultiprocessor);
    EXPECT_EQ(limits_.max_registers_per_block, properties_.regsPerBlock);
    EXPECT_EQ(limits_.shared_bytes_per_sm, static_cast<std::int64_t>(properties_.sharedMemPerMultiprocessor));
    EXPECT_EQ(limits_.max_shared_bytes_per_block, static_cast<std::int64_t>(properties_.sharedMemPerBlockOptin));
    EXPECT_EQ(limits_.reserved_shared_bytes_per_block,
              static_cast<std::int64_t>(properties_.reservedSharedMemPerBlock));
}

TEST_F(OccupancyOnDevice, AgreesWithTheDriverForRealKernels) {
    std::vector<int> register_counts;
    for (const NamedKernel& kernel : kernels) {
        cudaFuncAttributes attributes{};
        KBENCH_CUDA(cudaFuncGetAttributes(&attributes, kernel.function));
        register_counts.push_back(attributes.numRegs);
        const auto most_dynamic =
            static_cast<int>(limits_.max_shared_bytes_per_block) - static_cast<int>(attributes.sharedSizeBytes);
        KBENCH_CUDA(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, most_dynamic));
        for (int threads = 32; threads <= 1024; threads += 32)
            for (int bytes = 4; bytes <= most_dynamic; bytes += 1500) {
                int expected = 0;
                KBENCH_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&expected, kernel.function, threads,
                                                                          static_cast<std::size_t>(bytes)));
                LaunchShape launch;
                launch.block_threads = threads;
                launch.registers_per_thread = attributes.numRegs;
                launch.static_shared_bytes = static_cast<std::int64_t>(attributes.sharedSizeBytes);
                launch.dynamic_shared_bytes = bytes;
                launch.barriers = 1;
                ASSERT_EQ(blocks_per_sm(limits_, launch), expected)
                    << kernel.name << " of " << attributes.numRegs << " registers, " << threads << " threads, " << bytes
                    << " dynamic bytes";
            }
    }
    // The cases are worth little if the compiler gave all kernels about the same registers.
    EXPECT_LE(*std::min_element(register_counts.begin(), register_counts.end()), 32);
    EXPECT_GE(*std::max_element(register_counts.begin(), register_counts.end()), 200);
}

}  // namespace
}  // namespace kbench::test
