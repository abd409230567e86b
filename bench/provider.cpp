// The table of providers.
#include "bench/provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace kbench {

#ifdef KBENCH_HAVE_CUDA
std::unique_ptr<Provider> make_cuda_native(const ProviderContext&);
std::unique_ptr<Provider> make_cublaslt(const ProviderContext&);
std::unique_ptr<Provider> make_cublas(const ProviderContext&);
std::unique_ptr<Provider> make_native_naive(const ProviderContext&);
std::unique_ptr<Provider> make_native_tiled(const ProviderContext&);
std::unique_ptr<Provider> make_native_register(const ProviderContext&);
std::unique_ptr<Provider> make_native_async(const ProviderContext&);
std::unique_ptr<Provider> make_native_mma(const ProviderContext&);
#endif
std::unique_ptr<Provider> make_onednn(const ProviderContext&);
std::unique_ptr<Provider> make_blas(const ProviderContext&);
std::unique_ptr<Provider> make_cpu_native(const ProviderContext&);
std::unique_ptr<Provider> make_reference(const ProviderContext&);

namespace {

std::vector<ProviderRow> built_in() {
    return {
#ifdef KBENCH_HAVE_CUDA
        // Before native, whose plain GEMM no model should run on by default.
        {"cublaslt", BackendKind::cuda, "GEMMs, bias and GELU in the epilogue, algorithm chosen by measurement",
         make_cublaslt},
        {"native", BackendKind::cuda, "kbench's own CUDA kernels", make_cuda_native},
        {"cublas", BackendKind::cuda, "GEMMs, cuBLAS's own choice of algorithm", make_cublas},
        {"native_naive", BackendKind::cuda, "GEMM ladder 1: one thread an element", make_native_naive},
        {"native_tiled", BackendKind::cuda, "GEMM ladder 2: tiles in shared memory", make_native_tiled},
        {"native_register", BackendKind::cuda, "GEMM ladder 3: tiles in registers, 16-byte loads",
         make_native_register},
        {"native_async", BackendKind::cuda, "GEMM ladder 4: cp.async into a ring of stages", make_native_async},
        {"native_mma", BackendKind::cuda, "GEMM ladder 5: tensor cores through mma.sync", make_native_mma},
#endif
        {"onednn", BackendKind::cpu, "GEMMs with post-ops, layer norm, attention: fp32, bf16, fp16", make_onednn},
        {"blas", BackendKind::cpu, "GEMMs and attention through CBLAS: fp64, fp32", make_blas},
        {"native", BackendKind::cpu, "kbench's own vector loops for memory-bound steps", make_cpu_native},
        {"reference", BackendKind::cpu, "plain fp64 loops, the oracle; slow, only with --provider", make_reference},
    };
}

std::vector<ProviderRow>& all_rows() {
    static std::vector<ProviderRow> rows = built_in();
    return rows;
}

}  // namespace

std::span<const ProviderRow> provider_rows() { return all_rows(); }

bool register_provider(ProviderRow row) {
    const auto same = [&row](const ProviderRow& other) {
        return other.name == row.name && other.backend == row.backend;
    };
    if (std::ranges::any_of(all_rows(), same))
        throw std::invalid_argument(fmt::format("there is a provider '{}' already", row.name));
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
