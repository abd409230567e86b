// Recurrent layers step by step. oneDNN's own RNN primitives want the layer's input, but here its product with
// weight_ih is already done; and they know no lengths. A piece is a block of units of one direction: its thread
// multiplies h with the weights of all their gates and advances them. Backward it multiplies db with the units' columns
// of all gates' weights and takes them through the cell. StepProduct decides who multiplies.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/onednn/step_product.h"
#include "cpu/recurrent_steps.h"

namespace kbench::cpu {

using onednn::StepProduct;

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Units per piece: whole vectors of 16, equally many pieces per thread. A call costs 0.4 us besides its work. Pieces
/// in turn reuse a cache smaller than the weights (RecurrentSteps): 64 units of an LSTM are 512 KiB in bf16.
std::int64_t units_of_block(std::int64_t hidden, std::int64_t threads) {
    constexpr std::int64_t most = 64;
    const std::int64_t of_thread = (hidden + threads - 1) / threads, pieces = (of_thread + most - 1) / most;
    return std::min(hidden, ((of_thread + pieces - 1) / pieces + 15) / 16 * 16);
}

}  // namespace

struct RecurrentLayer::State {
    /// Units [first, first + count). Their weights are gates * count rows, gate after gate;
    /// backward they are `count` columns.
    struct Block {
        std::int64_t first, count;
        std::size_t weights;  ///< offset in the packed weights, in bytes
        StepProduct product;
    };

    Cell cell;
    RecurrentShape shape;
    DataType stored;
    bool backward;
    std::vector<Block> blocks;
    std::size_t packed_bytes = 0;
    /// Parts of the workspace. For each direction: h (backward db) twice, and c or what passes through the cell. For
    /// each task: sums and a scratchpad.
    std::size_t h_bytes, c_bytes, sums_bytes = 0, scratchpad_bytes = 0;
    std::size_t packing_bytes = 0;  ///< per block: its rows, one after another, and a scratchpad

    std::int64_t width() const { return gates_of(cell) * shape.hidden; }
    std::size_t row_bytes() const { return static_cast<std::size_t>(shape.hidden) * size_of(stored); }
    std::size_t direction_bytes() const { return 2 * h_bytes + c_bytes; }
    std::size_t task_bytes() const { return sums_bytes + scratchpad_bytes; }
    std::size_t rows_bytes() const {  ///< for the first block, which is the largest; backward needs no copy
        return backward ? 0 : aligned(static_cast<std::size_t>(gates_of(cell) * blocks.front().count) * row_bytes());
    }

    void add_block(std::int64_t first, std::int64_t count);
    dnnl_status_t pack(const Block& block, const char* plain, char* packed, char* workspace) const;
    template <Cell of, class T>
    dnnl_status_t run_back(const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                           const std::int32_t* lengths, char* workspace) const;
    template <Cell of, class T>
    dnnl_status_t run(const RecurrentDirection& forward, const RecurrentDirection& reverse, const std::int32_t* lengths,
                      char* workspace) const;
};

void RecurrentLayer::State::add_block(std::int64_t first, std::int64_t count) {
    const std::int64_t columns = backward ? count : gates_of(cell) * count, depth = backward ? width() : shape.hidden;
    const StepProduct::Weight weight{depth, columns, backward ? shape.hidden : 1, backward ? 1 : depth};
    blocks.push_back({first, count, packed_bytes, StepProduct(shape.batch, weight, stored)});
    const StepProduct& product = blocks.back().product;
    packed_bytes += aligned(product.packed_bytes());
    sums_bytes = std::max(sums_bytes, aligned(static_cast<std::size_t>(shape.batch * columns) * sizeof(float)));
    scratchpad_bytes = std::max(scratchpad_bytes, aligned(product.scratchpad_bytes()));
    packing_bytes = std::max(packing_bytes, rows_bytes() + aligned(product.pack_scratchpad_bytes()));
}

RecurrentLayer::RecurrentLayer(Cell cell, const RecurrentShape& shape, Precision precision, Direction direction)
    : state_(std::make_unique<State>()) {
    onednn::require(precision);
    State& s = *state_;
    s.cell = cell;
    s.shape = shape;
    s.stored = storage_type(precision);
    s.backward = direction == Direction::bwd;
    const std::int64_t columns = s.backward ? s.width() : shape.hidden;
    s.h_bytes = aligned(static_cast<std::size_t>(shape.batch * columns) * size_of(s.stored));
    s.c_bytes = aligned(static_cast<std::size_t>(shape.batch * shape.hidden) * sizeof(float));
    const std::int64_t units = units_of_block(shape.hidden, omp_get_max_threads());
    const onednn::MadeForOneThread guard;
    onednn::create("matmul", [&] {
        for (std::int64_t first = 0; first < shape.hidden; first += units)
            s.add_block(first, std::min(units, shape.hidden - first));
    });
}

RecurrentLayer::~RecurrentLayer() = default;

std::size_t RecurrentLayer::packed_bytes() const { return state_->packed_bytes; }

std::size_t RecurrentLayer::packing_bytes() const { return state_->blocks.size() * state_->packing_bytes; }

dnnl_status_t RecurrentLayer::State::pack(const Block& block, const char* plain, char* packed, char* workspace) const {
    const char* from = plain + static_cast<std::size_t>(block.first) * size_of(stored);
    if (!backward) {
        const std::size_t bytes = static_cast<std::size_t>(block.count) * row_bytes();
        for (std::int64_t g = 0; g < gates_of(cell); ++g) {
            const auto row = static_cast<std::size_t>(g * shape.hidden + block.first);
            std::copy_n(plain + row * row_bytes(), bytes, workspace + static_cast<std::size_t>(g) * bytes);
        }
        from = workspace;
    }
    return block.product.pack(from, packed + block.weights, workspace + rows_bytes());
}

void RecurrentLayer::pack(const void* plain, void* packed, void* workspace) const {
    const State& s = *state_;
    std::atomic<dnnl_status_t> status = dnnl_success;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
        const dnnl_status_t made = s.pack(s.blocks[i], static_cast<const char*>(plain), static_cast<char*>(packed),
                                          static_cast<char*>(workspace) + i * s.packing_bytes);
        if (made != dnnl_success) status = made;
    }
    onednn::check(status, "packing a recurrent weight");
}

void RecurrentLayer::pack(const void* plain, void* packed) const {
    std::vector<char> workspace(packing_bytes());
    pack(plain, packed, workspace.data());
}

std::size_t RecurrentLayer::workspace_bytes() const {
    return RecurrentSteps::memory_bytes + 2 * state_->direction_bytes() +
           2 * state_->blocks.size() * state_->task_bytes();
}

template <Cell of, class T>
dnnl_status_t RecurrentLayer::State::run(const RecurrentDirection& forward, const RecurrentDirection& reverse,
                                         const std::int32_t* lengths, char* workspace) const {
    char* const states = workspace + RecurrentSteps::memory_bytes;
    // h and c start as 0. h of sequences that have ended is still multiplied, and the result dropped.
    std::fill(states, states + 2 * direction_bytes(), char(0));
    const std::int64_t longest = longest_of(shape, lengths), pieces = static_cast<std::int64_t>(blocks.size());
    std::atomic<dnnl_status_t> status = dnnl_success;
    const RecurrentSteps steps(pieces, packed_bytes);
    steps.run(shape.steps, workspace, [&](bool is_reverse, std::int64_t piece, std::int64_t slot, std::int64_t step) {
        const Block& block = blocks[static_cast<std::size_t>(piece)];
        const RecurrentDirection& direction = is_reverse ? reverse : forward;
        char* const state = states + (is_reverse ? direction_bytes() : 0);
        const auto h = [&](std::int64_t at) {
            return reinterpret_cast<T*>(state + static_cast<std::size_t>(at % 2) * h_bytes);
        };
        char* const own =
            states + 2 * direction_bytes() + static_cast<std::size_t>(is_reverse * pieces + slot) * task_bytes();
        auto* const sums = reinterpret_cast<float*>(own);
        if (step == 0) {
            std::fill(own, own + sums_bytes, char(0));
        } else if (step < longest) {
            const dnnl_status_t made =
                block.product.run(is_reverse, h(step), static_cast<const char*>(direction.weight_hh) + block.weights,
                                  sums, own + sums_bytes);
            if (made != dnnl_success) status = made;
        }
        vectorised([&] {
            advance<of, T>(shape, direction, is_reverse, lengths, step, block.first, block.count, block.count, sums,
                           h(step), h(step + 1), reinterpret_cast<float*>(state + 2 * h_bytes));
        });
    });
    return status;
}

template <Cell of, class T>
dnnl_status_t RecurrentLayer::State::run_back(const RecurrentGradientDirection& forward,
                                              const RecurrentGradientDirection& reverse, const std::int32_t* lengths,
                                              char* workspace) const {
    char* const states = workspace + RecurrentSteps::memory_bytes;
    for (const std::size_t i : {0, 1}) std::fill_n(states + i * direction_bytes() + 2 * h_bytes, c_bytes, char(0));
    const std::int64_t longest = longest_of(shape, lengths), pieces = static_cast<std::int64_t>(blocks.size());
    std::atomic<dnnl_status_t> status = dnnl_success;
    const RecurrentSteps steps(pieces, packed_bytes);
    steps.run(shape.steps, workspace, [&](bool is_reverse, std::int64_t piece, std::int64_t slot, std::int64_t turn) {
        const std::int64_t step = shape.steps - 1 - turn;
        const Block& block = blocks[static_cast<std::size_t>(piece)];
        const RecurrentGradientDirection& direction = is_reverse ? reverse : forward;
        char* const state = states + (is_reverse ? direction_bytes() : 0);
        const auto db = [&](std::int64_t at) {
            return reinterpret_cast<T*>(state + static_cast<std::size_t>(at % 2) * h_bytes);
        };
        char* const own =
            states + 2 * direction_bytes() + static_cast<std::size_t>(is_reverse * pieces + slot) * task_bytes();
        auto* const sums = reinterpret_cast<float*>(own);
        if (step + 1 >= longest) {
            std::fill(own, own + sums_bytes, char(0));
        } else {
            const dnnl_status_t made =
                block.product.run(is_reverse, db(turn), static_cast<const char*>(direction.weight_hh) + block.weights,
                                  sums, own + sums_bytes);
            if (made != dnnl_success) status = made;
        }
        vectorised([&] {
            retreat<of, T>(shape, direction, is_reverse, lengths, step, block.first, block.count, block.count, sums,
                           db(turn + 1), width(), reinterpret_cast<float*>(state + 2 * h_bytes));
        });
    });
    return status;
}

namespace {

/// Calls `run(of<cell>, element)` for the layer's own cell and type; oneDNN has no fp64.
template <class Run>
void with_cell(Cell cell, DataType stored, const Run& run) {
    with_element(stored, [&]<class T>(T element) {
        if constexpr (!std::is_same_v<T, double>) {
            const auto made = [&]<Cell of>(std::integral_constant<Cell, of> own) {
                onednn::check(run(own, element), "a recurrent step");
            };
            switch (cell) {
                case Cell::lstm: return made(std::integral_constant<Cell, Cell::lstm>{});
                case Cell::gru: return made(std::integral_constant<Cell, Cell::gru>{});
                case Cell::rnn: return made(std::integral_constant<Cell, Cell::rnn>{});
            }
        }
    });
}

}  // namespace

void RecurrentLayer::run(const RecurrentDirection& forward, const RecurrentDirection& reverse,
                         const std::int32_t* lengths, void* workspace) const {
    const State& s = *state_;
    with_cell(s.cell, s.stored, [&]<Cell of, class T>(std::integral_constant<Cell, of>, T) {
        return s.run<of, T>(forward, reverse, lengths, static_cast<char*>(workspace));
    });
}

void RecurrentLayer::run_back(const RecurrentGradientDirection& forward, const RecurrentGradientDirection& reverse,
                              const std::int32_t* lengths, void* workspace) const {
    const State& s = *state_;
    with_cell(s.cell, s.stored, [&]<Cell of, class T>(std::integral_constant<Cell, of>, T) {
        return s.run_back<of, T>(forward, reverse, lengths, static_cast<char*>(workspace));
    });
}

std::string RecurrentLayer::implementation() const {
    std::string names = state_->blocks.front().product.implementation();
    if (const std::string last = state_->blocks.back().product.implementation(); last != names) names += ", " + last;
    return names + ", step by step";
}

}  // namespace kbench::cpu
