// Answers for a CPU as oneDNN can, and for a GPU as kbench's kernels and cuBLASLt can.
#include "bench/plan/device_support.h"

#include <algorithm>

#include <fmt/format.h>

#include "cpu/blas.h"
#include "cpu/onednn/onednn.h"
#include "cpu/threads.h"
#ifdef KBENCH_HAVE_CUDA
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "kernels/gemm/cublaslt.h"
#endif

namespace kbench {

std::string unsupported(const Device& device, Precision precision) {
    // A GPU that our kernels have code for computes in all of them.
    return device.is_gpu() || precision == Precision::fp64 ? "" : cpu::onednn_unsupported(precision);
}

std::int64_t column_multiple(const Device& device, Precision precision) {
    if (device.is_gpu()) return 64;
    // Only AMX gains: a head of 50257 columns in bf16 takes 5.1 to 7.4 ms padded to whole tiles, 6.0 to 11.1 without
    // (three runs on 16 cores of an Emerald Rapids); fp32 and fp16 gain nothing.
    const std::vector<std::string>& isa = cpu::cpu_info().isa;
    const bool amx = std::find(isa.begin(), isa.end(), "amx_bf16") != isa.end();
    return precision == Precision::bf16 && amx ? 64 : 1;
}

std::map<std::string, std::string> library_versions(const Device& device) {
    std::map<std::string, std::string> versions;
    if (!device.is_gpu()) {
        versions["onednn"] = cpu::onednn_version() + ", " + cpu::onednn_isa();
        versions["blas"] = cpu::blas_version();
        return versions;
    }
#ifdef KBENCH_HAVE_CUDA
    versions["cuda"] = device.info().gpu.value().cuda_runtime;
    const std::size_t lt = cuda::cublaslt_version();
    versions["cublaslt"] = fmt::format("{}.{}.{}", lt / 10000, lt / 100 % 100, lt % 100);
#endif
#ifdef KBENCH_HAVE_CUDNN
    if (const std::string version = cudnn_version(); !version.empty()) versions["cudnn"] = version;
#endif
    return versions;
}

}  // namespace kbench
