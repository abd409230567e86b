// Chooses and launches the kernel of the persistent LSTM. Its blocks wait for each other, so all blocks of a direction
// must be resident at once. They are launched cooperatively, which fails where that is impossible.
#include "kernels/recurrent/persistent/persistent.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "analysis/machine/tensor_cores.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/compute_capability.h"
#include "kernels/multiprocessors.h"
#include "kernels/recurrent/persistent/kernel.h"
#include "kernels/recurrent/persistent/layout.h"
#include "kernels/shared_memory.h"

namespace kbench::cuda {
namespace {

using namespace persistent;

/// The smallest of `sizes` that is at least `size`; 0 where there is none.
int fitting(std::int64_t size, std::initializer_list<int> sizes) {
    for (const int candidate : sizes)
        if (size <= candidate) return candidate;
    return 0;
}
int k_steps_of(const PersistentLstm& layer) {
    return fitting((layer.shape.hidden + warpgroups * depth - 1) / (warpgroups * depth), {4, 8, 16});
}
bool is_polled(const PersistentLstm& layer) { return layer.exchange == PersistentExchange::polled; }
constexpr int counted_batch = 64;
/// Number of parts: more sequences than a counted product holds run in parts, all steps of one part after another.
std::int64_t parts_of(const PersistentLstm& layer) {
    return is_polled(layer) ? 1 : (layer.shape.batch + counted_batch - 1) / counted_batch;
}
/// Sequences per part; the last part may have fewer.
std::int64_t batch_of_part(const PersistentLstm& layer) {
    return (layer.shape.batch + parts_of(layer) - 1) / parts_of(layer);
}
/// The most sequences of a polled product that registers allow.
int widest_tile(const PersistentLstm& layer) { return k_steps_of(layer) <= 8 ? 32 : 16; }
/// Sequences per product. Few wide tiles are faster than many narrow ones, because the next tile's work hides less of
/// the exchange than it costs. On an H200 in fp16, 16 sequences of hidden 1024 take 2.16 us as one tile, 2.41 as two;
/// 32 sequences of hidden 512 take 2.26 and 2.58.
int columns_of(const PersistentLstm& layer) {
    if (!is_polled(layer)) return fitting(batch_of_part(layer), {8, 16, 32, counted_batch});
    if (layer.tile != 0) return layer.tile;
    return std::min(fitting(std::min<std::int64_t>(layer.shape.batch, 32), {8, 16, 32}), widest_tile(layer));
}
int tiles_of(const PersistentLstm& layer) {
    const int columns = columns_of(layer);
    return static_cast<int>((batch_of_part(layer) + columns - 1) / columns);
}

const void* kernel_of(const PersistentLstm& layer) {
    const int k_steps = k_steps_of(layer), columns = columns_of(layer);
    if (k_steps == 0) return nullptr;
    switch (layer.type) {
        case DataType::fp16:
            return (is_polled(layer) ? polled_fp16_kernel : counted_fp16_kernel)(k_steps, columns, layer.variant);
        case DataType::bf16:
            return (is_polled(layer) ? polled_bf16_kernel : counted_bf16_kernel)(k_steps, columns, layer.variant);
        default: return nullptr;
    }
}

int shared_bytes_of(const PersistentLstm& layer) {
    const int k_steps = k_steps_of(layer), columns = columns_of(layer);
    return is_polled(layer) ? polled_bytes(k_steps, columns, tiles_of(layer)) : counted_bytes(k_steps, columns);
}
std::size_t slots_bytes(const PersistentLstm& layer) {
    return static_cast<std::size_t>(is_polled(layer) ? polled_slots : counted_slots) *
           static_cast<std::size_t>(layer.shape.hidden) *
           static_cast<std::size_t>(columns_of(layer) * tiles_of(layer)) * 2;
}

int blocks_of_direction(const PersistentLstm& layer) { return static_cast<int>(layer.shape.hidden) / units; }

/// Number of blocks that can be resident at once.
int places(const PersistentLstm& layer, const void* kernel) {
    int blocks = 0;
    const int multiprocessors = layer.multiprocessors > 0 ? layer.multiprocessors : multiprocessors_of(nullptr);
    const int bytes = shared_bytes_of(layer);
    allow_shared_memory(kernel, bytes);
    KBENCH_CUDA(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, static_cast<std::size_t>(bytes)));
    return blocks * multiprocessors;
}

std::string unsupported_device() {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();  // clears the error
        return "needs a device of compute capability 9.0";
    }
    const ComputeCapability here = compute_capability();
    if (tensor_cores(here.major, here.minor).family == TensorFamily::wgmma) return "";
    return fmt::format("its products are compute capability 9.0's, this is {}.{}", here.major, here.minor);
}

/// The direction with its pointers moved to the sequences from `first` on.
PersistentDirection from_sequence(PersistentDirection direction, std::int64_t first, std::int64_t hidden) {
    const auto behind = [first](auto* pointer, std::int64_t columns) {
        using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>, const char, char>;
        return pointer ? static_cast<Byte*>(pointer) + first * columns * 2 : nullptr;
    };
    direction.gates_x = behind(direction.gates_x, 4 * hidden);
    direction.out = behind(direction.out, hidden);
    direction.gates = behind(direction.gates, 4 * hidden);
    direction.cells = behind(direction.cells, hidden);
    return direction;
}

/// Runs all steps of `batch` sequences from `first` on.
void launch_part(const PersistentLstm& layer, std::int64_t first, std::int64_t batch,
                 const PersistentDirection& forward, const PersistentDirection& reverse, const std::int32_t* lengths,
                 void* workspace, cudaStream_t stream, std::uint64_t* clocks) {
    auto* const memory = static_cast<unsigned char*>(workspace);
    unsigned char* const slots = memory + counters_bytes;
    if (is_polled(layer))
        KBENCH_CUDA(cudaMemsetAsync(slots, 0xff, 2 * slots_bytes(layer), stream));
    else
        KBENCH_CUDA(cudaMemsetAsync(memory, 0, counters_bytes, stream));

    const std::int64_t hidden = layer.shape.hidden;
    Arguments arguments{.directions = {from_sequence(forward, first, hidden), from_sequence(reverse, first, hidden)},
                        .lengths = lengths + first,
                        .frames_per_step = layer.shape.frames_per_step,
                        .steps = static_cast<int>(layer.shape.steps),
                        .batch = static_cast<int>(batch),
                        .hidden = static_cast<int>(hidden),
                        .row_batch = static_cast<int>(layer.shape.batch),
                        .tiles = tiles_of(layer),
                        .first_direction = 0,
                        .h = {slots, slots + slots_bytes(layer)},
                        .counters = reinterpret_cast<std::uint32_t*>(memory),
                        .clocks = clocks};
    const void* const kernel = kernel_of(layer);
    const int blocks = persistent_lstm_blocks(layer), launches = 2 * blocks_of_direction(layer) / blocks;
    for (int launch = 0; launch < launches; ++launch) {
        arguments.first_direction = launch;
        void* parameters[] = {&arguments};
        KBENCH_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(threads), parameters,
                                                static_cast<std::size_t>(shared_bytes_of(layer)), stream));
    }
}

}  // namespace

PersistentLstm persistent_lstm_of(DataType type, const RecurrentShape& shape) {
    PersistentLstm layer{type, shape, PersistentExchange::polled};
    // One tile of 32 takes 2.90 us counted, two of 16 take 3.39 polled; two parts of 64 take 9.1, eight tiles 13.1.
    if (shape.batch > (k_steps_of(layer) > 8 ? widest_tile(layer) : polled_batch))
        layer.exchange = PersistentExchange::counted;
    return layer;
}

std::string persistent_lstm_unsupported(const PersistentLstm& layer) {
    const RecurrentShape& shape = layer.shape;
    if (layer.type != DataType::fp16 && layer.type != DataType::bf16)
        return fmt::format("keeps weights in registers, which have no place for {}", name(layer.type));
    if (shape.hidden % units != 0) return fmt::format("hidden {} is not a multiple of {}", shape.hidden, units);
    if (k_steps_of(layer) == 0)
        return fmt::format("hidden {} is over its limit of 1024, whose weights fill half of the registers",
                           shape.hidden);
    const std::int64_t widest = is_polled(layer) ? widest_tile(layer) : 0;
    if (layer.tile != 0 && (layer.tile > widest || fitting(layer.tile, {8, 16, 32}) != layer.tile))
        return fmt::format("{} sequences cannot take a step together", layer.tile);
    if (is_polled(layer) && shape.batch > polled_batch)
        return fmt::format("batch {} is over its limit of {}", shape.batch, polled_batch);
    if (layer.variant == PersistentVariant::clocks && parts_of(layer) > 1)
        return fmt::format("its clocks are of up to {} sequences", counted_batch);
    if (shape.steps > 1'000'000) return fmt::format("{} steps are over its limit of a million", shape.steps);
    const void* kernel = kernel_of(layer);
    if (!kernel) return "this variant is not built";
    if (std::string reason = unsupported_device(); !reason.empty()) return reason;
    const int needed = blocks_of_direction(layer), there = places(layer, kernel);
    return needed <= there
               ? ""
               : fmt::format("{} blocks must run at once, {} can on {} SMs", needed, there,
                             layer.multiprocessors > 0 ? layer.multiprocessors : multiprocessors_of(nullptr));
}

std::string persistent_lstm_name(const PersistentLstm& layer) {
    return fmt::format("persistent_lstm<{}, K {}, N {}, {}>{}", name(layer.type), 64 * k_steps_of(layer),
                       tiles_of(layer) == 1 ? fmt::format("{}", columns_of(layer))
                                            : fmt::format("{} x {}", tiles_of(layer), columns_of(layer)),
                       persistent_exchange_names[static_cast<int>(layer.exchange)],
                       parts_of(layer) == 1 ? "" : fmt::format(" in {} parts", parts_of(layer)));
}

std::size_t persistent_lstm_workspace(const PersistentLstm& layer) { return counters_bytes + 2 * slots_bytes(layer); }

int persistent_lstm_blocks(const PersistentLstm& layer) {
    const int of_direction = blocks_of_direction(layer);
    return 2 * of_direction <= places(layer, kernel_of(layer)) ? 2 * of_direction : of_direction;
}

int persistent_lstm_clock_blocks(const PersistentLstm& layer) { return 2 * blocks_of_direction(layer); }

void persistent_lstm(const PersistentLstm& asked, const PersistentDirection& forward,
                     const PersistentDirection& reverse, const std::int32_t* lengths, void* workspace,
                     cudaStream_t stream, std::uint64_t* clocks) {
    // A plan may have been made for the whole device and run on a part of it. Blocks that are not resident would
    // be waited for forever.
    PersistentLstm layer = asked;
    const int of_stream = multiprocessors_of(stream);
    layer.multiprocessors = asked.multiprocessors > 0 ? std::min(asked.multiprocessors, of_stream) : of_stream;
    if (const std::string reason = persistent_lstm_unsupported(layer); !reason.empty())
        throw Unsupported("persistent LSTM: " + reason);
    if ((layer.variant == PersistentVariant::clocks) != (clocks != nullptr))
        throw UsageError("persistent LSTM: the variant with clocks writes them, and no other");
    for (const PersistentDirection& d : {forward, reverse})
        if (layer.variant == PersistentVariant::saves && (d.gates == nullptr || d.cells == nullptr))
            throw UsageError("persistent LSTM: the variant that saves needs gates and cells");
    for (const PersistentDirection& d : {forward, reverse})
        for (const void* pointer : {d.gates_x, d.weight_hh, d.bias_ih, d.bias_hh, static_cast<const void*>(d.out)})
            if (reinterpret_cast<std::uintptr_t>(pointer) % 16 != 0)
                throw UsageError("persistent LSTM: operands begin at multiples of 16 bytes");
    if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
        throw UsageError("persistent LSTM: its workspace begins at a multiple of 256 bytes");

    const std::int64_t of_part = batch_of_part(layer);
    for (std::int64_t first = 0; first < layer.shape.batch; first += of_part)
        launch_part(layer, first, std::min(of_part, layer.shape.batch - first), forward, reverse, lengths, workspace,
                    stream, clocks);
}

}  // namespace kbench::cuda
