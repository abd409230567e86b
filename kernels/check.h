// One helper each for CUDA and cuBLAS calls: every call goes through it, failures become DeviceError with the call's
// text.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace kbench::cuda {

/// Throws DeviceError naming `call`, `file`:`line` and CUDA's text unless `status` is cudaSuccess.
void check(cudaError_t status, const char* call, const char* file, int line);
/// The same for cuBLAS and cuBLASLt.
void check(cublasStatus_t status, const char* call, const char* file, int line);

}  // namespace kbench::cuda

#define KBENCH_CUDA(call) ::kbench::cuda::check((call), #call, __FILE__, __LINE__)
/// After a kernel launch: catches bad launch configurations.
#define KBENCH_CUDA_LAUNCHED(kernel) ::kbench::cuda::check(cudaGetLastError(), kernel, __FILE__, __LINE__)
