// Checks of GEMM problems, and library handles that providers share.
#include "kernels/gemm/gemm_types.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "kbench/error.h"
#include "kernels/check.h"

namespace kbench::cuda {
namespace {

void check_operand(const char* operand, const Stored& stored) {
    if (stored.ld < stored.columns)
        throw UsageError(fmt::format("gemm: leading dimension {} of {} must be at least its {} columns", stored.ld,
                                     operand, stored.columns));
}

/// The handle that someone holds for the current device, else a new one. It is held weakly here, so that none outlives
/// its users into the driver's own shutdown.
template <typename Context, cublasStatus_t (*create)(Context**), cublasStatus_t (*destroy)(Context*)>
std::shared_ptr<Context> shared_handle() {
    static std::mutex mutex;
    static std::map<int, std::weak_ptr<Context>> handles;
    int device = 0;
    KBENCH_CUDA(cudaGetDevice(&device));
    const std::lock_guard lock(mutex);
    if (auto held = handles[device].lock()) return held;
    Context* created = nullptr;
    KBENCH_CUDA(create(&created));
    std::shared_ptr<Context> handle(created, destroy);
    handles[device] = handle;
    return handle;
}

}  // namespace

void check_problem(const GemmProblem& p) {
    if (std::min({p.m, p.n, p.k, p.batch}) < 1)
        throw UsageError(
            fmt::format("gemm: m {}, n {}, k {} and batch {} must all be at least 1", p.m, p.n, p.k, p.batch));
    check_operand("x", stored_x(p));
    check_operand("w", stored_w(p));
    check_operand("out", stored_out(p));
    const DataType storage = storage_type(p.precision);
    const bool upcast = size_of(storage) == 2 && p.out_type == DataType::fp32;
    if (p.out_type != storage && !upcast)
        throw Unsupported(fmt::format("gemm in {} stores {}, or fp32 from 16 bits, not {}", name(p.precision),
                                      name(storage), name(p.out_type)));
    if (p.has_epilogue() && p.batch > 1) throw Unsupported("a batched gemm has no epilogue");
    if (p.keeps_argument && !p.gelu) throw UsageError("gemm: without GELU there is no argument of it to keep");
    if (p.bias_gradient + p.gelu_gradient + (p.bias || p.gelu) > 1)
        throw Unsupported("gemm: one epilogue of the forward, of GELU's gradient or of a bias's, not several");
}

std::shared_ptr<cublasLtContext> shared_lt_handle() {
    return shared_handle<cublasLtContext, cublasLtCreate, cublasLtDestroy>();
}

std::shared_ptr<cublasContext> shared_cublas_handle() {
    return shared_handle<cublasContext, cublasCreate, cublasDestroy>();
}

}  // namespace kbench::cuda
