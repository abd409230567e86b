// The backward of recurrent layers: limits, workspace, the choice of kernels, and the operand that its weight products
// need.
#include "kernels/recurrent/gradient.h"

#include <limits>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/recurrent/gradient_layer.cuh"
#include "kernels/recurrent/recurrent.h"

namespace kbench::cuda {
namespace {

using namespace recurrent_layer;

constexpr LaunchGradient* launches[] = {gradient_fp16, gradient_bf16, gradient_tf32, gradient_fp32, gradient_fp64};

constexpr int hidden_gradient_threads = 256;

/// After the end of a sequence `gates` may hold NaN, so a da of 0 must not be multiplied by it.
template <class T>
__global__ void __launch_bounds__(hidden_gradient_threads)
    gru_hidden_gradient_kernel(const T* __restrict__ da, const T* __restrict__ gates, T* __restrict__ db,
                               std::int64_t count, std::int64_t hidden) {
    using S = Arithmetic<T>;
    const std::int64_t at = std::int64_t{blockIdx.x} * hidden_gradient_threads + threadIdx.x;
    if (at >= count) return;
    const std::int64_t row = at / (3 * hidden), column = at - row * 3 * hidden;
    const T own = da[at];
    const S value = static_cast<S>(own);
    if (column < 2 * hidden || value == S(0))
        db[at] = own;
    else
        db[at] = static_cast<T>(value * static_cast<S>(gates[row * 4 * hidden + column - 2 * hidden]));
}

}  // namespace

RecurrentProblem recurrent_gradient_problem(Cell cell, const RecurrentShape& shape, Precision precision,
                                            int multiprocessors) {
    const RecurrentProblem resident{cell, shape, precision, RecurrentKernels::resident, multiprocessors};
    return recurrent_gradient_unsupported(resident).empty() ? resident : RecurrentProblem{cell, shape, precision};
}

std::string recurrent_gradient_unsupported(const RecurrentProblem& problem) {
    const RecurrentShape& shape = problem.shape;
    const std::string reason = recurrent_unsupported({problem.cell, shape, problem.precision});
    if (!reason.empty() || problem.kernels == RecurrentKernels::steps) return reason;
    const auto size = static_cast<std::int64_t>(size_of(storage_type(problem.precision)));
    const std::int64_t width = gates_of(problem.cell) * shape.hidden;
    constexpr std::int64_t weights = block_warps * gradient_resident_chunks * chunk_bytes;
    const std::int64_t tiles = problem.precision == Precision::fp32 ? 1 : problem.precision == Precision::fp64 ? 2 : 4;
    constexpr std::int64_t most_steps = 1 << 24;  // times blocks: in 32 bits
    if (width * size > weights) return over_limit("gates of all units", width, weights / size);
    if (shape.batch > tiles * tile_sequences) return over_limit("batch", shape.batch, tiles * tile_sequences);
    if (shape.steps > most_steps) return over_limit("steps", shape.steps, most_steps);
    return no_resident_place(shape.hidden, problem.multiprocessors);
}

std::string recurrent_gradient_name(const RecurrentProblem& problem) {
    constexpr const char* names[] = {"recurrent_gradient_step", "recurrent_gradient_resident"};
    return std::string(names[static_cast<int>(problem.kernels)]) + "<" +
           std::string(cell_names[static_cast<int>(problem.cell)]) + ">";
}

std::size_t recurrent_gradient_workspace(const RecurrentProblem& problem) {
    return gradient_state_bytes(problem) + (problem.kernels == RecurrentKernels::resident ? counters_bytes : 0);
}

void recurrent_gradient(const RecurrentProblem& problem, const RecurrentGradientDirection& forward,
                        const RecurrentGradientDirection& reverse, const std::int32_t* lengths, void* workspace,
                        cudaStream_t stream) {
    if (const std::string reason = recurrent_gradient_unsupported(problem); !reason.empty())
        throw Unsupported("backward of a recurrent layer: " + reason);
    launches[static_cast<int>(problem.precision)](problem, forward, reverse, lengths, workspace, stream);
}

void gru_hidden_gradient(DataType type, const void* dgates_x, const void* gates, void* db, std::int64_t rows,
                         std::int64_t hidden, cudaStream_t stream) {
    const std::int64_t count = rows * 3 * hidden;
    dispatch(type, [&]<typename T>() {
        gru_hidden_gradient_kernel<T>
            <<<static_cast<unsigned>(divide_up(count, hidden_gradient_threads)), hidden_gradient_threads, 0, stream>>>(
                static_cast<const T*>(dgates_x), static_cast<const T*>(gates), static_cast<T*>(db), count, hidden);
    });
    KBENCH_CUDA_LAUNCHED("gru_hidden_gradient_kernel");
}

}  // namespace kbench::cuda
