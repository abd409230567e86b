// Turns failed CUDA and cuBLAS calls into DeviceError.
#include "kernels/check.h"

#include <fmt/format.h>

#include <string_view>

#include "kbench/error.h"

namespace kbench::cuda {
namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

void check(cudaError_t status, const char* call, const char* file, int line) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error where the device still works; otherwise the next launch would be blamed
    throw DeviceError(fmt::format("{} failed at {}:{}: {} ({})", call, base_name(file), line, cudaGetErrorName(status),
                                  cudaGetErrorString(status)));
}

void check(cublasStatus_t status, const char* call, const char* file, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw DeviceError(fmt::format("{} failed at {}:{}: {} ({})", call, base_name(file), line,
                                  cublasGetStatusName(status), cublasGetStatusString(status)));
}

}  // namespace kbench::cuda
