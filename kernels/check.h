// Checks of CUDA and cuBLAS calls. Every call goes through one of them; a failure becomes a DeviceError with the call's
// text.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>

namespace kbench::cuda {

/// Throws DeviceError with `call`, `file`:`line` and CUDA's message unless `status` is cudaSuccess.
void check(cudaError_t status, const char* call, const char* file, int line);
/// The same for cuBLAS and cuBLASLt.
void check(cublasStatus_t status, const char* call, const char* file, int line);

}  // namespace kbench::cuda

#define KBENCH_CUDA(call) ::kbench::cuda::check((call), #call, __FILE__, __LINE__)
/// Checks a kernel launch for a bad configuration.
#define KBENCH_CUDA_LAUNCHED(kernel) ::kbench::cuda::check(cudaGetLastError(), kernel, __FILE__, __LINE__)
