// GEMM through cuBLAS, which chooses the algorithm itself.
#include <cublas_v2.h>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/gemm_types.h"

namespace kbench::cuda {

struct CublasGemm::State {
    GemmProblem problem;
    std::shared_ptr<cublasContext> handle;
};

CublasGemm::CublasGemm(const GemmProblem& problem) {
    check_problem(problem);
    if (problem.has_epilogue()) throw Unsupported("cuBLAS has no epilogue; cuBLASLt has");
    state_ = std::make_unique<State>(State{problem, shared_cublas_handle()});
}

CublasGemm::~CublasGemm() = default;
CublasGemm::CublasGemm(CublasGemm&&) noexcept = default;

void CublasGemm::run(const GemmPointers& pointers, void* workspace, cudaStream_t stream, bool accumulates) const {
    const GemmProblem& p = state_->problem;
    cublasContext* handle = state_->handle.get();
    KBENCH_CUDA(cublasSetStream(handle, stream));
    KBENCH_CUDA(cublasSetWorkspace(handle, workspace, workspace_bytes));  // after the stream, which resets it
    // Without this flag, cuBLAS may keep split-K partial sums of 16-bit results in 16 bits.
    KBENCH_CUDA(cublasSetMathMode(
        handle, static_cast<cublasMath_t>(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    constexpr Scalar one(1);
    const Scalar beta(accumulates ? 1 : 0);
    const cudaDataType_t type = cuda_type(storage_type(p.precision)), out_type = cuda_type(p.out_type);
    const cublasOperation_t op_w = p.weight_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_x = p.x_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    // A row-major matrix is the transpose of a column-major one: out^T = w^T x^T.
    if (p.batch == 1)
        KBENCH_CUDA(cublasGemmEx_64(handle, op_w, op_x, p.n, p.m, p.k, one.as(p.precision), pointers.w, type, p.ld_w,
                                    pointers.x, type, p.ld_x, beta.as(p.precision), pointers.out, out_type, p.ld_out,
                                    compute_type(p.precision), CUBLAS_GEMM_DEFAULT));
    else
        KBENCH_CUDA(cublasGemmStridedBatchedEx_64(handle, op_w, op_x, p.n, p.m, p.k, one.as(p.precision), pointers.w,
                                                  type, p.ld_w, p.stride_w, pointers.x, type, p.ld_x, p.stride_x,
                                                  beta.as(p.precision), pointers.out, out_type, p.ld_out, p.stride_out,
                                                  p.batch, compute_type(p.precision), CUBLAS_GEMM_DEFAULT));
}

}  // namespace kbench::cuda
