// Chooses a rung's kernel for a problem and launches it.
#include "kernels/gemm/ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/gemm_types.h"
#include "kernels/gemm/ladder/kernel.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda {
namespace {

using ladder::Kernel;
using ladder::Kernels;

Kernels mma_kernels(Precision precision) {
    switch (precision) {
        case Precision::fp16: return ladder::mma_fp16_kernels();
        case Precision::bf16: return ladder::mma_bf16_kernels();
        case Precision::tf32: return ladder::mma_tf32_kernels();
        case Precision::fp64: return ladder::mma_fp64_kernels();
        case Precision::fp32: break;
    }
    return {};
}

Kernels kernels_of(GemmRung rung, Precision precision) {
    constexpr Kernels (*rungs[])(Precision) = {ladder::naive_kernels, ladder::tiled_kernels, ladder::register_kernels,
                                               ladder::async_kernels, mma_kernels};
    static_assert(std::size(rungs) == gemm_rungs.size());
    return rungs[static_cast<int>(rung)](precision);
}

int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

std::int64_t tiles(const Kernel& kernel, const GemmProblem& p) {
    return (p.m + kernel.tile.rows - 1) / kernel.tile.rows * ((p.n + kernel.tile.columns - 1) / kernel.tile.columns);
}

/// The kernel that finishes soonest among those whose buffers fit this device: elements of out that the busiest SM
/// computes, over the speed of the tile. Where none fits, the last one, which has the smallest tiles.
const Kernel& kernel_for(GemmRung rung, const GemmProblem& problem, std::size_t configuration) {
    if (const std::string reason = gemm_rung_unsupported(rung, problem.precision); !reason.empty())
        throw Unsupported(reason);
    const Kernels kernels = kernels_of(rung, problem.precision);
    if (configuration != chosen_configuration) {
        if (configuration < kernels.size()) return kernels[configuration];
        throw UsageError(fmt::format("gemm: configuration {} of rung {} in {} must be under {}", configuration,
                                     gemm_rungs[static_cast<int>(rung)], name(problem.precision), kernels.size()));
    }
    if (kernels.size() == 1) return kernels.front();
    const int sms = attribute(cudaDevAttrMultiProcessorCount);
    const int smem_bytes = shared_bytes_of_block();
    const Kernel* soonest = &kernels.back();
    double least = std::numeric_limits<double>::infinity();
    for (const Kernel& kernel : kernels) {
        const auto busiest = static_cast<double>((tiles(kernel, problem) + sms - 1) / sms);
        const double time = busiest * kernel.tile.rows * kernel.tile.columns / kernel.tile.speed_pct;
        if (kernel.smem_bytes > smem_bytes || time >= least) continue;
        least = time;
        soonest = &kernel;
    }
    return *soonest;
}

void check_ladder_problem(const GemmProblem& p) {
    check_problem(p);
    if (p.has_epilogue()) throw Unsupported("the GEMM ladder has no epilogue");
    if (p.batch != 1 || p.out_type != storage_type(p.precision))
        throw Unsupported("the GEMM ladder has neither batches nor upcast results");
    constexpr std::int64_t limit = std::numeric_limits<int>::max() - 256;  // a tile past the edge still fits in an int
    if (std::max({p.m, p.n, p.k}) > limit || p.m * p.n / 256 > limit)
        throw Unsupported(fmt::format(
            "the GEMM ladder counts rows, columns and tiles in 32 bits, too few for m {}, n {}, k {}", p.m, p.n, p.k));
}

}  // namespace

std::string gemm_rung_unsupported(GemmRung rung, Precision precision) {
    if (!kernels_of(rung, precision).empty()) return "";
    return precision == Precision::tf32 ? "tf32 is a tensor-core format" : "tensor cores have no fp32 products";
}

std::size_t gemm_rung_configurations(GemmRung rung, Precision precision) { return kernels_of(rung, precision).size(); }

int gemm_rung_smem_bytes(GemmRung rung, Precision precision, std::size_t configuration) {
    return kernels_of(rung, precision)[configuration].smem_bytes;
}

void gemm(GemmRung rung, const GemmProblem& problem, const GemmPointers& pointers, cudaStream_t stream,
          std::size_t configuration) {
    check_ladder_problem(problem);
    kernel_for(rung, problem, configuration).launch(problem, pointers, stream);
}

std::string gemm_kernel_name(GemmRung rung, const GemmProblem& problem, std::size_t configuration) {
    check_ladder_problem(problem);
    const Kernel& kernel = kernel_for(rung, problem, configuration);
    const ladder::Tile& t = kernel.tile;
    if (t.stages == 0) return fmt::format("{}<{}>", kernel.family, name(problem.precision));
    const std::string stages = t.stages == 1 ? "" : fmt::format(",{} stages", t.stages);
    return fmt::format("{}<{},{}x{}x{}{}>", kernel.family, name(problem.precision), t.rows, t.columns, t.depth, stages);
}

}  // namespace kbench::cuda
