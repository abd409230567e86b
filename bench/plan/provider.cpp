// The table of providers.
#include "bench/plan/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kbench {

/// The function that makes a provider, declared where it is used, so that a provider is one line of the table.
#define MADE_BY(function)                                           \
    [](const ProviderContext& context) {                            \
        std::unique_ptr<Provider> function(const ProviderContext&); \
        return function(context);                                   \
    }

static std::vector<ProviderRow> built_in() {
    return {
#ifdef KBENCH_HAVE_CUDA
        // Before native, whose plain GEMM no model should run on by default.
        {"cublaslt", BackendKind::cuda, "GEMMs, bias and GELU in the epilogue, algorithm chosen by measurement",
         MADE_BY(make_cublaslt)},
        {"native", BackendKind::cuda, "kbench's own CUDA kernels", MADE_BY(make_cuda_native)},
        {"cublas", BackendKind::cuda, "GEMMs, cuBLAS's own choice of algorithm", MADE_BY(make_cublas)},
        {"native_naive", BackendKind::cuda, "GEMM ladder 1: one thread an element", MADE_BY(make_native_naive)},
        {"native_tiled", BackendKind::cuda, "GEMM ladder 2: tiles in shared memory", MADE_BY(make_native_tiled)},
        {"native_register", BackendKind::cuda, "GEMM ladder 3: tiles in registers, 16-byte loads",
         MADE_BY(make_native_register)},
        {"native_async", BackendKind::cuda, "GEMM ladder 4: cp.async into a ring of stages",
         MADE_BY(make_native_async)},
        {"native_mma", BackendKind::cuda, "GEMM ladder 5: tensor cores through mma.sync", MADE_BY(make_native_mma)},
#ifdef KBENCH_HAVE_CUDNN
        {"cudnn", BackendKind::cuda, "attention, layer norm, softmax; only with --provider", MADE_BY(make_cudnn)},
#endif
#endif
        {"onednn", BackendKind::cpu, "GEMMs with post-ops, layer norm, attention: fp32, bf16, fp16",
         MADE_BY(make_onednn)},
        {"blas", BackendKind::cpu, "GEMMs and attention through CBLAS: fp64, fp32", MADE_BY(make_blas)},
        {"native", BackendKind::cpu, "kbench's own vector loops for memory-bound steps", MADE_BY(make_cpu_native)},
        {"reference", BackendKind::cpu, "plain fp64 loops, the oracle; slow, only with --provider",
         MADE_BY(make_reference)},
    };
}

namespace {

std::vector<ProviderRow>& all_rows() {
    static std::vector<ProviderRow> rows = built_in();
    return rows;
}

}  // namespace

std::span<const ProviderRow> provider_rows() { return all_rows(); }

bool register_provider(ProviderRow row) {
    if (row.name.empty() || row.name.find_first_of(",=* /") != std::string::npos)
        throw std::invalid_argument(
            fmt::format("a provider cannot be called '{}': --provider could not name it", row.name));
    const auto same = [&row](const ProviderRow& other) {
        return other.name == row.name && other.backend == row.backend;
    };
    if (std::ranges::any_of(all_rows(), same))
        throw std::invalid_argument(fmt::format("{} has a provider '{}' already", name(row.backend), row.name));
    all_rows().push_back(std::move(row));
    return true;
}

std::vector<std::unique_ptr<Provider>> make_providers(BackendKind backend, const ProviderContext& context) {
    std::vector<std::unique_ptr<Provider>> providers;
    for (const ProviderRow& row : all_rows())
        if (row.backend == backend) providers.push_back(row.make(context));
    return providers;
}

}  // namespace kbench
