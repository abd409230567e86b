// Fused causal attention: K and V of every head are packed once into oneDNN's weight layouts, then threads take blocks
// of query rows: scores = Q K^T, exponentials, context = P V, all in the thread's own part of the workspace.
//
// The blocks of a head need ever more keys, so each block has its own pair of matmuls; they all read the one packed K
// and V, because a matmul over fewer keys finds its weights at the front of those for all keys (`is_front_of`).
#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;
using Tag = memory::format_tag;

namespace {

/// Query rows of a block. A multiple of 64, the columns of a block of packed weights, so that blocks of keys end where
/// blocks of packed keys end. More rows use packed K and V more often, fewer compute less above the diagonal.
constexpr std::int64_t rows_per_block(DataType type) { return type == DataType::fp32 ? 64 : 128; }

/// Matmuls made under this guard may run inside a parallel region, by one thread each: oneDNN splits the work and sizes
/// the scratchpad for the thread count it sees when a primitive is made.
class MadeForOneThread {
  public:
    MadeForOneThread() : threads_(omp_get_max_threads()) { omp_set_num_threads(1); }
    ~MadeForOneThread() { omp_set_num_threads(threads_); }

  private:
    int threads_;
};

/// True when all elements of `part` lie in `whole`'s memory where `whole` has them.
bool is_front_of(const memory::desc& part, const memory::desc& whole) {
    if (part.get_inner_blks() != whole.get_inner_blks() || part.get_inner_idxs() != whole.get_inner_idxs())
        return false;
    for (std::size_t d = 0; d < 2; ++d) {
        memory::dim block = 1;
        for (std::size_t i = 0; i < part.get_inner_blks().size(); ++i)
            if (part.get_inner_idxs()[i] == static_cast<memory::dim>(d)) block *= part.get_inner_blks()[i];
        const bool strides_matter = part.get_padded_dims()[d] > block;
        if (strides_matter && part.get_strides()[d] != whole.get_strides()[d]) return false;
    }
    return true;
}

dnnl::matmul::primitive_desc product(const memory::desc& a, const memory::desc& b, const memory::desc& c) {
    return {onednn::engine(), a, b, c, onednn::attributes()};
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

template <class T>
void copy_rows(std::int64_t rows, std::int64_t columns, const T* from, std::int64_t stride, T* to) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, columns, to + r * columns);
}

/// Narrows `count` numbers to what the next product reads, by the CPU's conversion instructions: oneDNN computes in
/// these types only where the CPU has them (onednn_unsupported), and rounding by integer operations would take longer
/// than the exponential itself (0.27 ns an element against 0.27, on a Zen 4 core).
template <class T>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void narrow(const float* from, std::int64_t count, T* to) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const auto mask = static_cast<__mmask16>(count - i < 16 ? (1 << (count - i)) - 1 : 0xffff);
        const __m512 wide = _mm512_maskz_loadu_ps(mask, from + i);
        __m256i narrowed;
        if constexpr (std::is_same_v<T, BFloat16>)
            narrowed = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(wide));
        else
            narrowed = _mm512_maskz_cvtps_ph(mask, wide, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm256_mask_storeu_epi16(to + i, mask, narrowed);
    }
}

/// Row r of `scores` [rows, keys] sees the first `first_row + r + 1` keys. In place: scores become 2^(scale (s - max)),
/// 0 where unseen; narrowed into `p` too unless T is float. inverse_sums[r] = 1 / the row's sum before narrowing.
template <class T>
void exponentials(std::int64_t first_row, std::int64_t rows, std::int64_t keys, float scale, float* scores, T* p,
                  float* inverse_sums) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t seen = first_row + r + 1;
        float* s = scores + r * keys;
        float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
        for (std::int64_t k = 0; k < seen; ++k) largest = s[k] * scale > largest ? s[k] * scale : largest;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t k = 0; k < seen; ++k) {
            const float exponent = s[k] * scale - largest;
            s[k] = exp2_in_range(exponent < exp2_lowest<float> ? exp2_lowest<float> : exponent);
            sum += s[k];
        }
        inverse_sums[r] = 1 / sum;
        if constexpr (std::is_same_v<T, float>) {
            std::fill(s + seen, s + keys, 0.0f);
        } else {
            narrow(s, seen, p + r * keys);
            std::fill(p + r * keys + seen, p + (r + 1) * keys, T{});
        }
    }
}

template <class T>
void scale_rows(std::int64_t rows, std::int64_t columns, const float* context, const float* factors, T* out,
                std::int64_t stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (std::int64_t c = 0; c < columns; ++c) store(out[r * stride + c], context[r * columns + c] * factors[r]);
    }
}

}  // namespace

struct CausalAttention::State {
    struct Block {
        std::int64_t first_row, rows, keys;
        dnnl::matmul::primitive_desc scores, context;
    };
    struct Thread {
        Call pack_k, pack_v;
        std::vector<Call> scores, context;  ///< of each block
    };

    Attention attention;
    DataType stored;
    memory::desc packed_k, packed_v;  ///< of one head, all keys
    std::vector<Block> blocks;
    std::vector<Thread> threads;

    /// The workspace: packed K and V of each head, then for each thread the buffers of one block, in this order.
    /// Probabilities as wide as the scores replace them.
    std::size_t k_bytes, v_bytes, q_bytes, scores_bytes, p_bytes, context_bytes, sums_bytes, scratchpad_bytes;
    std::size_t thread_bytes() const {
        return q_bytes + scores_bytes + p_bytes + context_bytes + sums_bytes + scratchpad_bytes;
    }
    std::int64_t all_heads() const { return attention.shape.batch * attention.shape.heads; }
    std::int64_t qkv_width() const { return 3 * attention.shape.heads * attention.shape.head_size; }

    bool make_blocks(Tag k_layout, Tag v_layout);
    void make_threads();
    void size_buffers();
    template <class T>
    dnnl_status_t run_block(const Thread& thread, std::size_t index, std::int64_t head, const T* qkv, T* out,
                            const char* packed, char* buffers) const;
    template <class T>
    void run(const T* qkv, T* out, char* workspace) const;
};

/// Makes the matmuls of all blocks; false when a block's weights are not the front of those for all keys.
bool CausalAttention::State::make_blocks(Tag k_layout, Tag v_layout) {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto type = onednn::data_type(stored);
    const auto f32 = memory::data_type::f32;
    blocks.clear();
    for (std::int64_t row = 0; row < seq; row += rows_per_block(stored)) {
        const std::int64_t rows = std::min(rows_per_block(stored), seq - row), keys = row + rows;
        const memory::desc q({rows, head_size}, type, Tag::ab), k({head_size, keys}, type, k_layout);
        const memory::desc scores({rows, keys}, f32, Tag::ab), p({rows, keys}, type, Tag::ab);
        const memory::desc v({keys, head_size}, type, v_layout), context({rows, head_size}, f32, Tag::ab);
        blocks.push_back({row, rows, keys, product(q, k, scores), product(p, v, context)});
    }
    packed_k = blocks.back().scores.weights_desc();
    packed_v = blocks.back().context.weights_desc();
    return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
        return is_front_of(block.scores.weights_desc(), packed_k) &&
               is_front_of(block.context.weights_desc(), packed_v);
    });
}

void CausalAttention::State::make_threads() {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto type = onednn::data_type(stored);
    const memory::desc k({head_size, seq}, type, memory::dims{1, qkv_width()});
    const memory::desc v({seq, head_size}, type, memory::dims{qkv_width(), 1});
    const auto pack = [](const memory::desc& from, const memory::desc& to) {
        const dnnl::reorder::primitive_desc desc(onednn::engine(), from, onednn::engine(), to, onednn::attributes());
        return std::pair(dnnl::reorder(desc), desc);
    };
    const auto [pack_k, pack_k_desc] = pack(k, packed_k);
    const auto [pack_v, pack_v_desc] = pack(v, packed_v);
    scratchpad_bytes = std::max(pack_k_desc.scratchpad_desc().get_size(), pack_v_desc.scratchpad_desc().get_size());
    for (Thread& thread : threads) {
        thread.pack_k =
            Call(pack_k,
                 {{DNNL_ARG_FROM, k}, {DNNL_ARG_TO, packed_k}, {DNNL_ARG_SCRATCHPAD, pack_k_desc.scratchpad_desc()}});
        thread.pack_v =
            Call(pack_v,
                 {{DNNL_ARG_FROM, v}, {DNNL_ARG_TO, packed_v}, {DNNL_ARG_SCRATCHPAD, pack_v_desc.scratchpad_desc()}});
    }
    const auto add = [&](const dnnl::matmul::primitive_desc& desc, std::vector<Call> Thread::*calls) {
        const dnnl::matmul matmul(desc);
        scratchpad_bytes = std::max(scratchpad_bytes, desc.scratchpad_desc().get_size());
        for (Thread& thread : threads)
            (thread.*calls)
                .emplace_back(matmul, std::vector<Call::Argument>{{DNNL_ARG_SRC, desc.src_desc()},
                                                                  {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                                  {DNNL_ARG_DST, desc.dst_desc()},
                                                                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    };
    for (const Block& block : blocks) {
        add(block.scores, &Thread::scores);
        add(block.context, &Thread::context);
    }
}

void CausalAttention::State::size_buffers() {
    const auto rows = static_cast<std::size_t>(std::min(rows_per_block(stored), attention.shape.seq));
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

template <class T>
dnnl_status_t CausalAttention::State::run_block(const Thread& thread, std::size_t index, std::int64_t head,
                                                const T* qkv, T* out, const char* packed, char* buffers) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto& [first_row, rows, keys, scores_desc, context_desc] = blocks[index];
    char* next = buffers;
    const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
    T* q = reinterpret_cast<T*>(take(q_bytes));
    float* scores = reinterpret_cast<float*>(take(scores_bytes));
    T* p = p_bytes ? reinterpret_cast<T*>(take(p_bytes)) : reinterpret_cast<T*>(scores);
    float* context = reinterpret_cast<float*>(take(context_bytes));
    float* inverse_sums = reinterpret_cast<float*>(take(sums_bytes));
    char* scratchpad = take(scratchpad_bytes);
    const char* k = packed + head * static_cast<std::int64_t>(k_bytes + v_bytes);
    const char* v = k + k_bytes;

    const std::int64_t row = head / heads * seq + first_row, column = head % heads * head_size;
    // oneDNN's fast matmuls take dense activations only, and q is a strided part of qkv.
    copy_rows(rows, head_size, qkv + row * qkv_width() + column, qkv_width(), q);
    dnnl_status_t status = thread.scores[index].run({q, k, scores, scratchpad});
    vectorised([&] {
        const auto scale = static_cast<float>(attention.scale) * log2_e<float>;
        exponentials(first_row, rows, keys, scale, scores, p, inverse_sums);
    });
    status = std::max(status, thread.context[index].run({p, v, context, scratchpad}));
    vectorised([&] {
        const std::int64_t width = heads * head_size;
        scale_rows(rows, head_size, context, inverse_sums, out + row * width + column, width);
    });
    return status;
}

template <class T>
void CausalAttention::State::run(const T* qkv, T* out, char* workspace) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const std::int64_t head_count = all_heads(), tasks = head_count * std::ssize(blocks);
    char* buffers = workspace + head_count * static_cast<std::int64_t>(k_bytes + v_bytes);
    int worst = dnnl_success;  // throwing inside the parallel region would end the process
#pragma omp parallel num_threads(static_cast <int>(threads.size())) reduction(max : worst)
    {
        const auto id = static_cast<std::size_t>(omp_get_thread_num());
        const Thread& thread = threads[id];
        char* own = buffers + id * thread_bytes();
#pragma omp for schedule(static)
        for (std::int64_t task = 0; task < 2 * head_count; ++task) {
            const std::int64_t head = task / 2, width = heads * head_size;
            const T* q = qkv + head / heads * seq * qkv_width() + head % heads * head_size;
            char* k = workspace + head * static_cast<std::int64_t>(k_bytes + v_bytes);
            worst = std::max<int>(worst, task % 2 ? thread.pack_v.run({q + 2 * width, k + k_bytes, own})
                                                  : thread.pack_k.run({q + width, k, own}));
        }
        // The last blocks see the most keys: taken first, they leave small ones to even out the threads' ends.
#pragma omp for schedule(dynamic)
        for (std::int64_t task = 0; task < tasks; ++task) {
            const auto index = blocks.size() - 1 - static_cast<std::size_t>(task / head_count);
            worst = std::max<int>(worst, run_block(thread, index, task % head_count, qkv, out, workspace, own));
        }
    }
    onednn::check(static_cast<dnnl_status_t>(worst), "attention");
}

CausalAttention::CausalAttention(const Attention& attention, Precision precision) : state_(std::make_unique<State>()) {
    onednn::require(precision);
    state_->attention = attention;
    state_->stored = storage_type(precision);
    state_->threads.resize(static_cast<std::size_t>(omp_get_max_threads()));
    onednn::create("matmul of an attention block", [&] {
        const MadeForOneThread guard;
        // Plain layouts always fit, but oneDNN then packs K and V again for every block.
        if (!state_->make_blocks(Tag::any, Tag::any)) state_->make_blocks(Tag::ba, Tag::ab);
        state_->make_threads();
    });
    state_->size_buffers();
}

CausalAttention::~CausalAttention() = default;

std::size_t CausalAttention::workspace_bytes() const {
    return static_cast<std::size_t>(state_->all_heads()) * (state_->k_bytes + state_->v_bytes) +
           state_->threads.size() * state_->thread_bytes();
}

void CausalAttention::run(const void* qkv, void* out, void* workspace) const {
    with_element(state_->stored, [&]<class T>(T) {
        if constexpr (!std::is_same_v<T, double>)
            state_->run(static_cast<const T*>(qkv), static_cast<T*>(out), static_cast<char*>(workspace));
    });
}

std::string CausalAttention::implementation() const { return state_->blocks.back().scores.impl_info_str(); }

}  // namespace kbench::cpu
