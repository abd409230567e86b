// Fused causal attention. K and V of every head are packed once into oneDNN's weight layouts. Then threads take blocks
// of query rows: scores = Q K^T, exponentials, context = P V, all in the thread's own part of the workspace.
//
// Each later block of a head needs more keys, so each block has its own matmuls. They all read the one packed K and V,
// because a matmul over some of the keys finds its weights inside those for all keys (`is_part_of`).
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "cpu/onednn/attention_loops.h"
#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::block_size;
using onednn::Call;
using onednn::is_part_of;
using onednn::KeyRange;
using onednn::MadeForOneThread;
using Tag = memory::format_tag;

namespace {

/// Query rows per block, a multiple of 64 (the columns of a block of packed weights), so that blocks of keys end where
/// blocks of packed keys end. More rows reuse packed K and V more, fewer compute less above the diagonal. At 1024 keys
/// this is the best of 64, 128, 192 and 256 on 16 cores of an Emerald Rapids (within 10 % of the next one).
constexpr std::int64_t rows_per_block(DataType type) { return type == DataType::fp32 ? 64 : 128; }

/// Keys per product of scores. oneDNN 3.2 keeps 16-bit products with n > 8 k off AMX (amx_xf16_is_small_shape in its
/// brgemm_matmul_utils.cpp), which made them four times as slow. fp32 probabilities replace their scores, so all
/// scores of a row must lie together.
std::int64_t keys_per_product(DataType type, const AttentionShape& shape) {
    return type == DataType::fp32 ? shape.seq : std::max<std::int64_t>(64, 8 * shape.head_size / 64 * 64);
}

/// Keys per packing task: few enough that many threads can share the packing of few heads.
constexpr std::int64_t keys_per_packing = 256;

dnnl::matmul::primitive_desc product(const memory::desc& a, const memory::desc& b, const memory::desc& c) {
    return {onednn::engine(), a, b, c, onednn::attributes()};
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct CausalAttention::State {
    struct Block {
        std::int64_t first_row, rows, keys;
        std::vector<KeyRange> ranges;
        std::vector<dnnl::matmul::primitive_desc> scores;  ///< per range
        dnnl::matmul::primitive_desc context;
    };
    /// Primitives with the memory objects of one thread.
    struct Thread {
        std::vector<Call> pack_k, pack_v;       ///< per packing
        std::vector<std::vector<Call>> scores;  ///< per block and range
        std::vector<Call> context;              ///< per block
    };

    Attention attention;
    DataType stored;
    memory::desc packed_k, packed_v;  ///< for one head, all keys
    std::vector<Block> blocks;
    std::vector<Thread> threads;

    /// The workspace: packed K and V of each head, then each thread's buffers for one block, in this order.
    /// Probabilities as wide as the scores replace them.
    std::size_t k_bytes, v_bytes, q_bytes, scores_bytes, p_bytes, context_bytes, sums_bytes, scratchpad_bytes = 0;
    std::size_t thread_bytes() const {
        return q_bytes + scores_bytes + p_bytes + context_bytes + sums_bytes + scratchpad_bytes;
    }
    std::int64_t all_heads() const { return attention.shape.batch * attention.shape.heads; }
    std::int64_t qkv_width() const { return 3 * attention.shape.heads * attention.shape.head_size; }
    std::int64_t packed_bytes() const { return static_cast<std::int64_t>(k_bytes + v_bytes); }  ///< per head

    bool make_blocks(Tag k_layout, Tag v_layout);
    void make_packings();
    void make_calls();
    void size_buffers();
    dnnl_status_t pack(const Thread& thread, std::int64_t head, std::size_t packing, const char* qkv, char* packed,
                       char* scratchpad) const;
    template <class T>
    dnnl_status_t run_block(const Thread& thread, std::size_t index, std::int64_t head, const T* qkv, float* lse,
                            T* out, const char* packed, char* buffers) const;
    template <class T>
    void run(const T* qkv, float* lse, T* out, char* workspace) const;
};

/// Makes the matmuls of all blocks; returns false when the weights of one are not inside those for all keys.
bool CausalAttention::State::make_blocks(Tag k_layout, Tag v_layout) {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto type = onednn::data_type(stored);
    const auto f32 = memory::data_type::f32;
    const std::int64_t most_keys = keys_per_product(stored, attention.shape);
    blocks.clear();
    for (std::int64_t row = 0; row < seq; row += rows_per_block(stored)) {
        Block block{
            row, std::min(rows_per_block(stored), seq - row), std::min(row + rows_per_block(stored), seq), {}, {}, {}};
        const memory::desc q({block.rows, head_size}, type, Tag::ab);
        for (std::int64_t key = 0; key < block.keys; key += most_keys) {
            const std::int64_t keys = std::min(most_keys, block.keys - key);
            const memory::desc k({head_size, keys}, type, k_layout), scores({block.rows, keys}, f32, Tag::ab);
            block.ranges.push_back({key, keys});
            block.scores.push_back(product(q, k, scores));
        }
        const memory::desc p({block.rows, block.keys}, type, Tag::ab), v({block.keys, head_size}, type, v_layout);
        block.context = product(p, v, {{block.rows, head_size}, f32, Tag::ab});
        blocks.push_back(std::move(block));
    }
    const Block& last = blocks.back();
    // The layout for all keys comes from a product of them all, since those of the last block may be split.
    packed_k = product({{last.rows, head_size}, type, Tag::ab}, {{head_size, seq}, type, k_layout},
                       {{last.rows, seq}, f32, Tag::ab})
                   .weights_desc();
    packed_v = last.context.weights_desc();
    return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
        for (std::size_t i = 0; i < block.ranges.size(); ++i)
            if (!is_part_of(block.scores[i].weights_desc(), packed_k, 1, block.ranges[i].first)) return false;
        return is_part_of(block.context.weights_desc(), packed_v, 0, 0);
    });
}

/// Makes reorders of `keys_per_packing` keys at a time from qkv into the packed layouts.
void CausalAttention::State::make_packings() {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto type = onednn::data_type(stored);
    const auto make = [&](const memory::desc& from, const memory::desc& to, std::vector<Call> Thread::*calls) {
        const dnnl::reorder::primitive_desc desc(onednn::engine(), from, onednn::engine(), to, onednn::attributes());
        const dnnl::reorder reorder(desc);
        scratchpad_bytes = std::max(scratchpad_bytes, desc.scratchpad_desc().get_size());
        for (Thread& thread : threads)
            (thread.*calls)
                .emplace_back(reorder, std::vector<Call::Argument>{{DNNL_ARG_FROM, from},
                                                                   {DNNL_ARG_TO, to},
                                                                   {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    };
    for (std::int64_t key = 0; key < seq; key += keys_per_packing) {
        const std::int64_t keys = std::min(keys_per_packing, seq - key);
        make({{head_size, keys}, type, memory::dims{1, qkv_width()}},
             packed_k.submemory_desc({head_size, keys}, {0, key}), &Thread::pack_k);
        make({{keys, head_size}, type, memory::dims{qkv_width(), 1}},
             packed_v.submemory_desc({keys, head_size}, {key, 0}), &Thread::pack_v);
    }
}

void CausalAttention::State::make_calls() {
    const auto call = [&](const dnnl::matmul& matmul, const dnnl::matmul::primitive_desc& desc) {
        return Call(matmul, {{DNNL_ARG_SRC, desc.src_desc()},
                             {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                             {DNNL_ARG_DST, desc.dst_desc()},
                             {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    };
    for (const Block& block : blocks) {
        for (Thread& thread : threads) thread.scores.emplace_back();
        for (const auto& scores : block.scores) {
            scratchpad_bytes = std::max(scratchpad_bytes, scores.scratchpad_desc().get_size());
            const dnnl::matmul matmul(scores);
            for (Thread& thread : threads) thread.scores.back().push_back(call(matmul, scores));
        }
        scratchpad_bytes = std::max(scratchpad_bytes, block.context.scratchpad_desc().get_size());
        const dnnl::matmul matmul(block.context);
        for (Thread& thread : threads) thread.context.push_back(call(matmul, block.context));
    }
}

void CausalAttention::State::size_buffers() {
    const auto rows = static_cast<std::size_t>(blocks.front().rows);
    const auto seq = static_cast<std::size_t>(attention.shape.seq);
    const auto head_size = static_cast<std::size_t>(attention.shape.head_size);
    k_bytes = aligned(packed_k.get_size());
    v_bytes = aligned(packed_v.get_size());
    q_bytes = aligned(rows * head_size * size_of(stored));
    scores_bytes = aligned(rows * seq * sizeof(float));
    p_bytes = stored == DataType::fp32 ? 0 : aligned(rows * seq * size_of(stored));
    context_bytes = aligned(rows * head_size * sizeof(float));
    sums_bytes = aligned(rows * sizeof(float));
    scratchpad_bytes = aligned(scratchpad_bytes);
}

/// Packs K and V of `keys_per_packing` keys of one head.
dnnl_status_t CausalAttention::State::pack(const Thread& thread, std::int64_t head, std::size_t packing,
                                           const char* qkv, char* packed, char* scratchpad) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const std::int64_t row = head / heads * seq + static_cast<std::int64_t>(packing) * keys_per_packing;
    const auto part = [&](int index) {
        const std::int64_t element = row * qkv_width() + (index * heads + head % heads) * head_size;
        return qkv + element * static_cast<std::int64_t>(size_of(stored));
    };
    char* k = packed + head * packed_bytes();
    return std::max(thread.pack_k[packing].run({part(1), k, scratchpad}),
                    thread.pack_v[packing].run({part(2), k + k_bytes, scratchpad}));
}

template <class T>
dnnl_status_t CausalAttention::State::run_block(const Thread& thread, std::size_t index, std::int64_t head,
                                                const T* qkv, float* lse, T* out, const char* packed,
                                                char* buffers) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const Block& block = blocks[index];
    char* next = buffers;
    const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
    T* q = reinterpret_cast<T*>(take(q_bytes));
    float* scores = reinterpret_cast<float*>(take(scores_bytes));
    T* p = p_bytes ? reinterpret_cast<T*>(take(p_bytes)) : reinterpret_cast<T*>(scores);
    float* context = reinterpret_cast<float*>(take(context_bytes));
    float* inverse_sums = reinterpret_cast<float*>(take(sums_bytes));
    char* scratchpad = take(scratchpad_bytes);
    const char* k = packed + head * packed_bytes();
    const char* v = k + k_bytes;

    const std::int64_t row = head / heads * seq + block.first_row, column = head % heads * head_size;
    // oneDNN's fast matmuls take only dense activations, and q is a strided part of qkv.
    onednn::copy_rows(block.rows, head_size, qkv + row * qkv_width() + column, qkv_width(), q);

    dnnl_status_t status = dnnl_success;
    const std::int64_t k_stride = packed_k.get_strides()[1] / block_size(packed_k, 1);
    for (std::size_t i = 0; i < block.ranges.size(); ++i) {
        const std::int64_t first = block.ranges[i].first;
        const char* weights = k + first * k_stride * static_cast<std::int64_t>(sizeof(T));
        status = std::max(status, thread.scores[index][i].run({q, weights, scores + block.rows * first, scratchpad}));
    }
    vectorised([&] {
        const auto scale = static_cast<float>(attention.scale) * log2_e<float>;
        onednn::exponentials(block.first_row, block.rows, block.keys, scale, block.ranges, scores, p, inverse_sums,
                             lse != nullptr ? lse + head * seq + block.first_row : nullptr);
    });
    status = std::max(status, thread.context[index].run({p, v, context, scratchpad}));
    vectorised([&] {
        const std::int64_t width = heads * head_size;
        onednn::scale_rows(block.rows, head_size, context, inverse_sums, out + row * width + column, width);
    });
    return status;
}

template <class T>
void CausalAttention::State::run(const T* qkv, float* lse, T* out, char* workspace) const {
    const std::int64_t heads = all_heads();
    const auto packings = static_cast<std::int64_t>(threads.front().pack_k.size());
    // One block near the end of the sequence and one near its start form a task, so that tasks are equal. A thread's
    // tasks are neighbours, so that it finds packed K and V in its own cache.
    const auto count = static_cast<std::int64_t>(blocks.size()), pairs = (count + 1) / 2;
    char* buffers = workspace + heads * packed_bytes();
    int worst = dnnl_success;  // throwing inside the parallel region would end the process
#pragma omp parallel num_threads(static_cast <int>(threads.size())) reduction(max : worst)
    {
        const auto id = static_cast<std::size_t>(omp_get_thread_num());
        const Thread& thread = threads[id];
        char* own = buffers + id * thread_bytes();
#pragma omp for schedule(static)
        for (std::int64_t task = 0; task < heads * packings; ++task)
            worst = std::max<int>(worst, pack(thread, task / packings, static_cast<std::size_t>(task % packings),
                                              reinterpret_cast<const char*>(qkv), workspace, own));
#pragma omp for schedule(static)
        for (std::int64_t task = 0; task < heads * pairs; ++task) {
            const std::int64_t head = task / pairs, first = task % pairs, second = count - 1 - first;
            for (const std::int64_t index : {second, first}) {
                worst = std::max<int>(
                    worst, run_block(thread, static_cast<std::size_t>(index), head, qkv, lse, out, workspace, own));
                if (first == second) break;
            }
        }
    }
    onednn::check(static_cast<dnnl_status_t>(worst), "attention");
}

CausalAttention::CausalAttention(const Attention& attention, Precision precision) : state_(std::make_unique<State>()) {
    onednn::require(precision);
    if (!(attention.scale > 0))
        throw UsageError(fmt::format("the scale of attention is {}; it must be positive", attention.scale));
    state_->attention = attention;
    state_->stored = storage_type(precision);
    state_->threads.resize(static_cast<std::size_t>(omp_get_max_threads()));
    onednn::create("matmul of an attention block", [&] {
        const MadeForOneThread guard;
        // Plain layouts always fit, but then oneDNN packs K and V again for every block.
        if (!state_->make_blocks(Tag::any, Tag::any)) state_->make_blocks(Tag::ba, Tag::ab);
        state_->make_packings();
        state_->make_calls();
    });
    state_->size_buffers();
}

CausalAttention::~CausalAttention() = default;

std::size_t CausalAttention::workspace_bytes() const {
    return static_cast<std::size_t>(state_->all_heads()) * (state_->k_bytes + state_->v_bytes) +
           state_->threads.size() * state_->thread_bytes();
}

void CausalAttention::run(In<"qkv"> qkv, Out<"lse?"> lse, Out<"out"> out, void* workspace) const {
    with_element(state_->stored, [&]<class T>(T) {
        if constexpr (!std::is_same_v<T, double>)
            state_->run(static_cast<const T*>(qkv), lse, static_cast<T*>(out), static_cast<char*>(workspace));
    });
}

std::string CausalAttention::implementation() const { return state_->blocks.back().scores.front().impl_info_str(); }

}  // namespace kbench::cpu
