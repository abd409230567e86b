// Recurrent layers: limits, workspace and the choice among the kernels.
#include "kernels/recurrent/recurrent.h"

#include <algorithm>
#include <limits>

#include "kernels/recurrent/layer.cuh"
#include "kernels/recurrent/steps.h"

namespace kbench::cuda {

std::string recurrent_unsupported(const RecurrentProblem& problem) {
    const RecurrentShape& shape = problem.shape;
    const auto over = [](const char* what, std::int64_t value, std::int64_t limit) {
        return std::string(what) + " " + std::to_string(value) + " is over its limit of " + std::to_string(limit);
    };
    // Of rows of out, of a grid's second dimension, of an index into a row of gates.
    constexpr std::int64_t most_rows = std::numeric_limits<std::int32_t>::max();
    constexpr std::int64_t most_sequences = 65535 * recurrent_layer::tile_sequences, most_hidden = 1 << 20;
    if (shape.hidden > most_hidden) return over("hidden", shape.hidden, most_hidden);
    if (shape.batch > most_sequences) return over("batch", shape.batch, most_sequences);
    return shape.steps > most_rows / shape.batch ? over("steps", shape.steps, most_rows / shape.batch) : "";
}

std::string recurrent_kernel_name(const RecurrentProblem& problem) {
    return "recurrent_step<" + std::string(cell_names[static_cast<int>(problem.cell)]) + ">";
}

std::size_t recurrent_workspace(const RecurrentProblem& problem) {
    const DataType type = storage_type(problem.precision);
    const RecurrentShape& shape = problem.shape;
    const auto h = static_cast<std::size_t>(4 * shape.batch * recurrent_layer::h_stride_of(type, shape.hidden));
    const auto c = static_cast<std::size_t>(2 * shape.batch * shape.hidden);
    return h * size_of(type) + c * std::max(size_of(type), sizeof(float));
}

void recurrent(const RecurrentProblem& problem, const RecurrentDirection& forward, const RecurrentDirection& reverse,
               const std::int32_t* lengths, void* workspace, cudaStream_t stream) {
    using namespace recurrent_layer;
    constexpr LaunchSteps* of_precision[] = {steps_fp16, steps_bf16, steps_tf32, steps_fp32, steps_fp64};
    of_precision[static_cast<int>(problem.precision)](problem, forward, reverse, lengths, workspace, stream);
}

}  // namespace kbench::cuda
