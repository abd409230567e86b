// Recurrent layers: limits, workspace and the choice of kernels.
#include "kernels/recurrent/recurrent.h"

#include <limits>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/multiprocessors.h"
#include "kernels/recurrent/launches.h"
#include "kernels/recurrent/layer.cuh"
#include "kernels/shared_memory.h"

namespace kbench::cuda {
namespace {

using namespace recurrent_layer;

constexpr LaunchLayer* launches[][2] = {{steps_fp16, resident_fp16},
                                        {steps_bf16, resident_bf16},
                                        {steps_tf32, resident_tf32},
                                        {steps_fp32, resident_fp32},
                                        {steps_fp64, resident_fp64}};

LaunchLayer* launch_of(const RecurrentProblem& problem) {
    return launches[static_cast<int>(problem.precision)][static_cast<int>(problem.kernels)];
}

std::string not_resident(const RecurrentProblem& problem) {
    const RecurrentShape& shape = problem.shape;
    const auto size = static_cast<std::int64_t>(size_of(storage_type(problem.precision)));
    constexpr std::int64_t weights = block_warps * resident_chunks * chunk_bytes;
    const bool plain = problem.precision == Precision::fp32 || problem.precision == Precision::fp64;
    const std::int64_t sequences = (plain ? 1 : 4) * tile_sequences;
    constexpr std::int64_t most_steps = 1 << 24;  // times blocks: in 32 bits
    if (shape.hidden * size % 16 != 0) return "rows of weights are not whole pieces of 16 bytes";
    if (shape.hidden * size > weights) return over_limit("hidden", shape.hidden, weights / size);
    if (shape.batch > sequences) return over_limit("batch", shape.batch, sequences);
    if (shape.steps > most_steps) return over_limit("steps", shape.steps, most_steps);
    return no_resident_place(shape.hidden, problem.multiprocessors);
}

}  // namespace

namespace recurrent_layer {

std::string over_limit(const char* what, std::int64_t value, std::int64_t limit) {
    return std::string(what) + " " + std::to_string(value) + " is over its limit of " + std::to_string(limit);
}

/// Resident blocks of both directions; an SM holds one.
std::int64_t resident_blocks(std::int64_t hidden) { return 2 * divide_up(hidden, block_units); }

std::string no_resident_place(std::int64_t hidden, int multiprocessors) {
    int device = 0, sms = 0, cooperative = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();  // clears the error
        return "there is no device";
    }
    KBENCH_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    KBENCH_CUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    if (cooperative == 0) return "the device has no cooperative launch";
    if (shared_bytes_of_block() < resident_smem_bytes) return "the device has too little shared memory";
    if (multiprocessors > 0) sms = std::min(sms, multiprocessors);
    return resident_blocks(hidden) <= sms ? "" : over_limit("blocks", resident_blocks(hidden), sms);
}

void launch_resident_blocks(const void* kernel, std::int64_t hidden, void** arguments, int shared_bytes,
                            cudaStream_t stream) {
    const std::int64_t blocks = resident_blocks(hidden);
    if (const int there = multiprocessors_of(stream); blocks > there)
        throw Unsupported("recurrent layer: " + std::to_string(blocks) + " blocks must run at once, " +
                          std::to_string(there) + " can on " + std::to_string(there) + " SMs");
    KBENCH_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(block_threads), arguments,
                                            static_cast<std::size_t>(shared_bytes), stream));
}

}  // namespace recurrent_layer

RecurrentProblem recurrent_problem(Cell cell, const RecurrentShape& shape, Precision precision, int multiprocessors) {
    const RecurrentProblem resident{cell, shape, precision, RecurrentKernels::resident, multiprocessors};
    return recurrent_unsupported(resident).empty() ? resident : RecurrentProblem{cell, shape, precision};
}

std::string recurrent_unsupported(const RecurrentProblem& problem) {
    const RecurrentShape& shape = problem.shape;
    // Limits for rows of out, for a grid's second dimension, and for an index into a row of gates.
    constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();
    constexpr std::int64_t most_sequences = 65535 * tile_sequences, most_hidden = 1 << 20;
    if (shape.hidden > most_hidden) return over_limit("hidden", shape.hidden, most_hidden);
    if (shape.batch > most_sequences) return over_limit("batch", shape.batch, most_sequences);
    if (shape.steps > most_rows / shape.batch) return over_limit("steps", shape.steps, most_rows / shape.batch);
    return problem.kernels == RecurrentKernels::resident ? not_resident(problem) : "";
}

std::string recurrent_kernel_name(const RecurrentProblem& problem) {
    constexpr const char* names[] = {"recurrent_step", "recurrent_resident"};
    return std::string(names[static_cast<int>(problem.kernels)]) + "<" +
           std::string(cell_names[static_cast<int>(problem.cell)]) + ">";
}

std::size_t recurrent_workspace(const RecurrentProblem& problem) {
    return state_bytes(problem) + (problem.kernels == RecurrentKernels::resident ? counters_bytes : 0);
}

void recurrent(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
               const std::int32_t* lengths, void* workspace, cudaStream_t stream) {
    if (const std::string reason = recurrent_unsupported(problem); !reason.empty())
        throw Unsupported("recurrent layer: " + reason);
    if (problem.kernels == RecurrentKernels::resident)
        for (const void* weights : {forward.weight_hh, reverse.weight_hh})
            if (reinterpret_cast<std::uintptr_t>(weights) % 16 != 0)
                throw UsageError("recurrent layer: weights do not begin at a multiple of 16 bytes");
    launch_of(problem)(problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda
