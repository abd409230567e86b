// Backward of causal attention. A task owns blocks of a head's keys. For a block and a range of the queries that see
// it, it computes S^T = K Q^T and dP^T = V dO^T, P^T and dS^T from them, then dV += P^T dO, dK += dS^T Q and dQ += dS K
// (dS is dS^T read transposed): 5 products, and every exponential once.
//
// dQ is summed in fp32, in one matrix per task, so that no two tasks add to the same number. Where heads are few, each
// is split into several tasks; the matrices of a head are added up at the end, in a fixed order.
#include <fmt/ranges.h>
#include <omp.h>

#include <algorithm>
#include <utility>

#include "cpu/onednn/attention_gradient_loops.h"
#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::block_size;
using onednn::Call;
using onednn::is_part_of;
using onednn::MadeForOneThread;
using Tag = memory::format_tag;

namespace {

/// Keys per block, a multiple of 64 (the columns of a block of packed weights), so that ranges of queries start where
/// blocks of packed queries do. More keys read packed queries less often, fewer compute less above the diagonal. In
/// fp32 64, 128, 192 and 256 take 17.6, 18.3, 18.8 and 20.2 ms for 12 heads of 1024 x 64 on two cores with AVX-512.
/// With AMX a product of 64 keys would take little longer than its call.
constexpr std::int64_t keys_per_block(DataType type) { return type == DataType::fp32 ? 64 : 128; }

/// Queries per product. Scores and dP of 128 keys with 512 queries take 512 KiB, P and dS in 16 bits half as much, so
/// they stay in L2. oneDNN 3.2 keeps 16-bit products with n > 8 k off AMX (amx_xf16_is_small_shape in its
/// brgemm_matmul_utils.cpp), and k is the head size here.
std::int64_t queries_per_product(std::int64_t head_size) {
    return std::clamp<std::int64_t>(8 * head_size / 128 * 128, 128, 512);
}

/// Rows that are packed, or written, at a time.
constexpr std::int64_t rows_per_packing = 256;

/// Tasks per head, so that the threads end together. Each further task costs about 2 % of the time, for its dQ matrix.
/// 12 heads on 16 threads take the time of one head; as 48 tasks they take three quarters of it.
std::int64_t parts_of_a_head(std::int64_t heads, std::int64_t blocks, std::int64_t threads) {
    const auto time = [&](std::int64_t parts) {
        const std::int64_t rounds = (heads * parts + threads - 1) / threads;
        return static_cast<double>(rounds) / static_cast<double>(parts) * (1 + 0.02 * static_cast<double>(parts));
    };
    std::int64_t best = 1;
    for (std::int64_t parts = 2; parts <= std::min<std::int64_t>(8, (blocks + 1) / 2); ++parts)
        if (time(parts) < time(best)) best = parts;
    return best;
}

/// The task that owns a block. Blocks are dealt out back and forth, because later ones have fewer queries.
std::int64_t part_of(std::int64_t block, std::int64_t parts) {
    const std::int64_t place = block % (2 * parts);
    return std::min(place, 2 * parts - 1 - place);
}

dnnl::matmul::primitive_desc product(const memory::desc& a, const memory::desc& b, const memory::desc& c,
                                     bool accumulates) {
    dnnl::post_ops post_ops;
    if (accumulates) post_ops.append_sum(1);
    return {onednn::engine(), a, b, c, onednn::attributes(post_ops)};
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct CausalAttentionGradient::State {
    /// The products of some keys with some queries. S^T and dP^T have the same shape, and so do dV and dK.
    struct Products {
        std::int64_t keys, queries;
        bool packed;  ///< scores reads packed queries; else oneDNN packs them again for every block of keys
        dnnl::matmul::primitive_desc scores, own, dq;
    };
    /// Primitives with the memory objects of one thread.
    struct Thread {
        std::vector<Call> packings;         ///< packs q or dout; one per packing
        std::vector<Call> scores, own, dq;  ///< one per entry of `products`
    };

    Attention attention;
    DataType stored;
    std::int64_t parts;
    memory::desc transposed;  ///< Q^T or dO^T of one head, packed
    std::vector<Products> products;
    std::vector<Thread> threads;

    /// The workspace: slots, each with the data of one head, then each thread's buffers for one block, in this order. P
    /// and dS as wide as scores and dP replace them. While heads are not split, each thread has a slot, so that a
    /// head's rows stay in the cache of the thread that reads them; else each head has one.
    std::size_t rows_bytes, packed_bytes, sums_bytes, dq_bytes;
    std::size_t block_bytes, scores_bytes, p_bytes, own_bytes, scratchpad_bytes = 0;
    std::size_t slot_bytes() const {
        return 2 * (rows_bytes + packed_bytes + sums_bytes) + static_cast<std::size_t>(parts) * dq_bytes;
    }
    std::size_t thread_bytes() const {
        return 2 * (block_bytes + scores_bytes + p_bytes + own_bytes) + scratchpad_bytes;
    }
    std::int64_t slots() const { return parts == 1 ? static_cast<std::int64_t>(threads.size()) : all_heads(); }
    std::int64_t all_heads() const { return attention.shape.batch * attention.shape.heads; }
    std::int64_t block_keys() const { return keys_per_block(stored); }
    std::int64_t key_blocks() const { return (attention.shape.seq + block_keys() - 1) / block_keys(); }

    void make_products();
    bool packs() const { return std::ranges::any_of(products, &Products::packed); }
    void make_packings();
    void make_calls();
    void size_buffers();
    std::size_t products_of(std::int64_t keys, std::int64_t queries) const;

    /// What the tasks of a head share: dense and packed rows, lse log2(e) and D of each query, and each task's dQ.
    struct Head {
        char *q, *dout, *packed_q, *packed_dout;
        float *log2_sums, *d, *dq;
    };
    Head head_at(char* workspace, std::int64_t slot) const;
    template <class T>
    dnnl_status_t prepare(const Thread& thread, std::int64_t head, std::int64_t packing, const T* qkv, const T* out,
                          const T* dout, const float* lse, const Head& to, char* scratchpad) const;
    template <class T>
    dnnl_status_t run_block(const Thread& thread, std::int64_t first_key, std::int64_t head, const T* qkv,
                            const Head& of, float* dq, T* dqkv, char* buffers) const;
    template <class T>
    void run(const T* qkv, const T* out, const T* dout, const float* lse, T* dqkv, char* workspace) const;
};

/// Makes the matmuls for every number of keys and queries that occurs.
void CausalAttentionGradient::State::make_products() {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const auto type = onednn::data_type(stored);
    const auto scores_of = [&](std::int64_t keys, std::int64_t queries, Tag layout) {
        return product({{keys, head_size}, type, Tag::ab}, {{head_size, queries}, type, layout},
                       {{keys, queries}, memory::data_type::f32, Tag::ab}, false);
    };
    const std::int64_t most = queries_per_product(head_size);
    transposed = scores_of(std::min(block_keys(), seq), seq, Tag::any).weights_desc();
    for (std::int64_t key = 0; key < seq; key += block_keys())
        for (std::int64_t query = key; query < seq; query += most) {
            const std::int64_t keys = std::min(block_keys(), seq - key), queries = std::min(most, seq - query);
            if (products_of(keys, queries) < products.size()) continue;
            auto scores = scores_of(keys, queries, Tag::any);
            const bool packed = is_part_of(scores.weights_desc(), transposed, 1, block_keys());
            if (!packed) scores = scores_of(keys, queries, Tag::ba);
            const memory::desc of_keys({keys, head_size}, type, Tag::ab),
                of_queries({queries, head_size}, type, Tag::ab);
            const memory::desc square({keys, queries}, type, Tag::ab), turned({queries, keys}, type, Tag::ba);
            const memory::desc own({keys, head_size}, memory::data_type::f32, Tag::ab);
            const memory::desc dq({queries, head_size}, memory::data_type::f32, Tag::ab);
            products.push_back({keys, queries, packed, scores, product(square, of_queries, own, true),
                                product(turned, of_keys, dq, true)});
        }
}

/// The index of the products for `keys` and `queries`; one past the end when they are not made yet.
std::size_t CausalAttentionGradient::State::products_of(std::int64_t keys, std::int64_t queries) const {
    const auto found =
        std::ranges::find_if(products, [=](const Products& p) { return p.keys == keys && p.queries == queries; });
    return static_cast<std::size_t>(found - products.begin());
}

/// Makes reorders of `rows_per_packing` rows at a time from dense rows into the packed layout.
void CausalAttentionGradient::State::make_packings() {
    if (!packs()) return;
    const auto [batch, heads, seq, head_size] = attention.shape;
    for (std::int64_t row = 0; row < seq; row += rows_per_packing) {
        const std::int64_t rows = std::min(rows_per_packing, seq - row);
        const memory::desc from({head_size, rows}, onednn::data_type(stored), Tag::ba),
            to = transposed.submemory_desc({head_size, rows}, {0, row});
        const dnnl::reorder::primitive_desc desc(onednn::engine(), from, onednn::engine(), to, onednn::attributes());
        const dnnl::reorder reorder(desc);
        scratchpad_bytes = std::max(scratchpad_bytes, desc.scratchpad_desc().get_size());
        for (Thread& thread : threads)
            thread.packings.emplace_back(
                reorder, std::vector<Call::Argument>{
                             {DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    }
}

void CausalAttentionGradient::State::make_calls() {
    const auto make = [&](const dnnl::matmul::primitive_desc& desc, std::vector<Call> Thread::*calls) {
        scratchpad_bytes = std::max(scratchpad_bytes, desc.scratchpad_desc().get_size());
        const dnnl::matmul matmul(desc);
        for (Thread& thread : threads)
            (thread.*calls)
                .emplace_back(matmul, std::vector<Call::Argument>{{DNNL_ARG_SRC, desc.src_desc()},
                                                                  {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                                  {DNNL_ARG_DST, desc.dst_desc()},
                                                                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    };
    for (const Products& p : products) {
        make(p.scores, &Thread::scores);
        make(p.own, &Thread::own);
        make(p.dq, &Thread::dq);
    }
}

void CausalAttentionGradient::State::size_buffers() {
    const auto seq = static_cast<std::size_t>(attention.shape.seq);
    const auto head_size = static_cast<std::size_t>(attention.shape.head_size);
    const auto keys = std::min<std::size_t>(static_cast<std::size_t>(block_keys()), seq);
    const auto queries = std::min(static_cast<std::size_t>(queries_per_product(attention.shape.head_size)), seq);
    rows_bytes = aligned(seq * head_size * size_of(stored));
    packed_bytes = packs() ? aligned(transposed.get_size()) : 0;
    sums_bytes = aligned(seq * sizeof(float));
    dq_bytes = aligned(seq * head_size * sizeof(float));
    block_bytes = aligned(keys * head_size * size_of(stored));
    scores_bytes = aligned(keys * queries * sizeof(float));
    p_bytes = stored == DataType::fp32 ? 0 : aligned(keys * queries * size_of(stored));
    own_bytes = aligned(keys * head_size * sizeof(float));
    scratchpad_bytes = aligned(scratchpad_bytes);
}

auto CausalAttentionGradient::State::head_at(char* workspace, std::int64_t slot) const -> Head {
    char* next = workspace + static_cast<std::size_t>(slot) * slot_bytes();
    const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
    Head at{};
    at.q = take(rows_bytes);
    at.dout = take(rows_bytes);
    at.packed_q = take(packed_bytes);
    at.packed_dout = take(packed_bytes);
    at.log2_sums = reinterpret_cast<float*>(take(sums_bytes));
    at.d = reinterpret_cast<float*>(take(sums_bytes));
    at.dq = reinterpret_cast<float*>(next);
    return at;
}

/// Prepares some rows of what `Head` holds.
template <class T>
dnnl_status_t CausalAttentionGradient::State::prepare(const Thread& thread, std::int64_t head, std::int64_t packing,
                                                      const T* qkv, const T* out, const T* dout, const float* lse,
                                                      const Head& to, char* scratchpad) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const std::int64_t width = heads * head_size, first = packing * rows_per_packing;
    const std::int64_t rows = std::min(rows_per_packing, seq - first), row = head / heads * seq + first;
    const std::int64_t column = head % heads * head_size;
    T *q = reinterpret_cast<T*>(to.q) + first * head_size,
      *dense_dout = reinterpret_cast<T*>(to.dout) + first * head_size;
    onednn::copy_rows(rows, head_size, qkv + row * 3 * width + column, 3 * width, q);
    onednn::copy_rows(rows, head_size, dout + row * width + column, width, dense_dout);
    vectorised([&] {
        const float* from = lse + head * seq + first;
        float* log2_sums = to.log2_sums + first;
#pragma omp simd
        for (std::int64_t r = 0; r < rows; ++r) log2_sums[r] = from[r] * log2_e<float>;
        onednn::sums_of_products(rows, head_size, out + row * width + column, dout + row * width + column, width,
                                 to.d + first);
    });
    if (thread.packings.empty()) return dnnl_success;
    const Call& pack = thread.packings[static_cast<std::size_t>(packing)];
    return std::max(pack.run({q, to.packed_q, scratchpad}), pack.run({dense_dout, to.packed_dout, scratchpad}));
}

/// Computes dK and dV of one block of keys, and adds its keys' contribution to `dq` [seq, head_size].
template <class T>
dnnl_status_t CausalAttentionGradient::State::run_block(const Thread& thread, std::int64_t first_key, std::int64_t head,
                                                        const T* qkv, const Head& of, float* dq, T* dqkv,
                                                        char* buffers) const {
    const auto [batch, heads, seq, head_size] = attention.shape;
    const std::int64_t width = heads * head_size, keys = std::min(block_keys(), seq - first_key);
    char* next = buffers;
    const auto take = [&next](std::size_t bytes) { return std::exchange(next, next + bytes); };
    T *k = reinterpret_cast<T*>(take(block_bytes)), *v = reinterpret_cast<T*>(take(block_bytes));
    float *scores = reinterpret_cast<float*>(take(scores_bytes)), *dp = reinterpret_cast<float*>(take(scores_bytes));
    T* p = p_bytes ? reinterpret_cast<T*>(take(p_bytes)) : reinterpret_cast<T*>(scores);
    T* ds = p_bytes ? reinterpret_cast<T*>(take(p_bytes)) : reinterpret_cast<T*>(dp);
    float *dk = reinterpret_cast<float*>(take(own_bytes)), *dv = reinterpret_cast<float*>(take(own_bytes));
    char* scratchpad = take(scratchpad_bytes);

    // oneDNN's fast matmuls take only dense activations, and k and v are strided parts of qkv.
    const std::int64_t at = (head / heads * seq + first_key) * 3 * width + head % heads * head_size;
    onednn::copy_rows(keys, head_size, qkv + at + width, 3 * width, k);
    onednn::copy_rows(keys, head_size, qkv + at + 2 * width, 3 * width, v);
    std::fill(dk, dk + keys * head_size, 0.0f);
    std::fill(dv, dv + keys * head_size, 0.0f);

    dnnl_status_t status = dnnl_success;
    const auto run = [&status](const Call& call, std::initializer_list<const void*> data) {
        status = std::max(status, call.run(data));
    };
    const std::int64_t most = queries_per_product(head_size);
    const std::int64_t packed_row = transposed.get_strides()[1] / block_size(transposed, 1);
    for (std::int64_t query = first_key; query < seq; query += most) {
        const std::int64_t queries = std::min(most, seq - query);
        const std::size_t index = products_of(keys, queries);
        const T *q = reinterpret_cast<const T*>(of.q) + query * head_size,
                *dout = reinterpret_cast<const T*>(of.dout) + query * head_size;
        const std::size_t packed = static_cast<std::size_t>(query * packed_row) * sizeof(T);
        const void* transposed_q = products[index].packed ? of.packed_q + packed : static_cast<const void*>(q);
        const void* transposed_dout = products[index].packed ? of.packed_dout + packed : static_cast<const void*>(dout);
        run(thread.scores[index], {k, transposed_q, scores, scratchpad});
        run(thread.scores[index], {v, transposed_dout, dp, scratchpad});
        vectorised([&] {
            onednn::gradient_exponentials({keys, queries, query - first_key},
                                          static_cast<float>(attention.scale) * log2_e<float>, of.log2_sums + query,
                                          of.d + query, scores, dp, p, ds);
        });
        run(thread.own[index], {p, dout, dv, scratchpad});
        run(thread.own[index], {ds, q, dk, scratchpad});
        run(thread.dq[index], {ds, k, dq + query * head_size, scratchpad});
    }
    vectorised([&] {
        const auto scale = static_cast<float>(attention.scale);
        onednn::write_rows(keys, head_size, scale, dk, dqkv + at + width, 3 * width);
        onednn::write_rows(keys, head_size, 1.0f, dv, dqkv + at + 2 * width, 3 * width);
    });
    return status;
}

template <class T>
void CausalAttentionGradient::State::run(const T* qkv, const T* out, const T* dout, const float* lse, T* dqkv,
                                         char* workspace) const {
    // No structured binding, because clang 19 captures none in an OpenMP region.
    const std::int64_t seq = attention.shape.seq, head_count = attention.shape.heads,
                       head_size = attention.shape.head_size;
    const std::int64_t heads = all_heads(), width = head_count * head_size;
    const std::int64_t packings = (seq + rows_per_packing - 1) / rows_per_packing;
    char* const buffers = workspace + static_cast<std::size_t>(slots()) * slot_bytes();
    const auto dq_elements = static_cast<std::int64_t>(dq_bytes / sizeof(float));
    int worst = dnnl_success;  // throwing inside the parallel region would end the process
#pragma omp parallel num_threads(static_cast <int>(threads.size())) reduction(max : worst)
    {
        const auto id = static_cast<std::int64_t>(omp_get_thread_num());
        const Thread& thread = threads[static_cast<std::size_t>(id)];
        char* const own = buffers + static_cast<std::size_t>(id) * thread_bytes();
        const auto prepare_rows = [&](std::int64_t head, std::int64_t packing, const Head& to) {
            worst = std::max<int>(worst, prepare(thread, head, packing, qkv, out, dout, lse, to, own));
        };
        const auto run_part = [&](std::int64_t head, std::int64_t part, const Head& of) {
            float* dq = of.dq + part * dq_elements;
            std::fill(dq, dq + seq * head_size, 0.0f);
            for (std::int64_t block = 0; block < key_blocks(); ++block)
                if (part_of(block, parts) == part)
                    worst = std::max<int>(worst, run_block(thread, block * block_keys(), head, qkv, of, dq, dqkv, own));
        };
        const auto write_dq = [&](std::int64_t head, std::int64_t packing, const Head& of) {
            const std::int64_t first = packing * rows_per_packing, rows = std::min(rows_per_packing, seq - first);
            float* dq = of.dq + first * head_size;
            T* to = dqkv + (head / head_count * seq + first) * 3 * width + head % head_count * head_size;
            vectorised([&] {
                for (std::int64_t part = 1; part < parts; ++part)
                    onednn::add(rows * head_size, dq + part * dq_elements, dq);
                onednn::write_rows(rows, head_size, static_cast<float>(attention.scale), dq, to, 3 * width);
            });
        };
        if (parts == 1) {
            const Head of = head_at(workspace, id);
#pragma omp for schedule(dynamic)
            for (std::int64_t head = 0; head < heads; ++head) {
                for (std::int64_t packing = 0; packing < packings; ++packing) prepare_rows(head, packing, of);
                run_part(head, 0, of);
                for (std::int64_t packing = 0; packing < packings; ++packing) write_dq(head, packing, of);
            }
        } else {
#pragma omp for schedule(static)
            for (std::int64_t task = 0; task < heads * packings; ++task)
                prepare_rows(task / packings, task % packings, head_at(workspace, task / packings));
#pragma omp for schedule(dynamic)
            for (std::int64_t task = 0; task < heads * parts; ++task)
                run_part(task / parts, task % parts, head_at(workspace, task / parts));
#pragma omp for schedule(static)
            for (std::int64_t task = 0; task < heads * packings; ++task)
                write_dq(task / packings, task % packings, head_at(workspace, task / packings));
        }
    }
    onednn::check(static_cast<dnnl_status_t>(worst), "attention's backward");
}

CausalAttentionGradient::CausalAttentionGradient(const Attention& attention, Precision precision)
    : state_(std::make_unique<State>()) {
    onednn::require(precision);
    state_->attention = attention;
    state_->stored = storage_type(precision);
    state_->threads.resize(static_cast<std::size_t>(omp_get_max_threads()));
    state_->parts = parts_of_a_head(state_->all_heads(), state_->key_blocks(), omp_get_max_threads());
    onednn::create("matmul of a block of attention's backward", [&] {
        const MadeForOneThread guard;
        state_->make_products();
        state_->make_packings();
        state_->make_calls();
    });
    state_->size_buffers();
}

CausalAttentionGradient::~CausalAttentionGradient() = default;

std::size_t CausalAttentionGradient::workspace_bytes() const {
    return static_cast<std::size_t>(state_->slots()) * state_->slot_bytes() +
           state_->threads.size() * state_->thread_bytes();
}

void CausalAttentionGradient::run(In<"qkv"> qkv, In<"out"> out, In<"dout"> dout, In<"lse"> lse, Out<"dqkv"> dqkv,
                                  void* workspace) const {
    with_element(state_->stored, [&]<class T>(T) {
        if constexpr (!std::is_same_v<T, double>)
            state_->run(static_cast<const T*>(qkv), static_cast<const T*>(out), static_cast<const T*>(dout), lse,
                        static_cast<T*>(dqkv), static_cast<char*>(workspace));
    });
}

std::string CausalAttentionGradient::implementation() const {
    std::vector<std::string> names;
    for (const State::Products& p : state_->products)
        for (const auto* desc : {&p.scores, &p.own, &p.dq})
            if (const std::string name = desc->impl_info_str(); std::ranges::find(names, name) == names.end())
                names.push_back(name);
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace kbench::cpu
