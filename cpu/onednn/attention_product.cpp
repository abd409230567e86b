// Unfused attention's two products as batched matmuls over [batch, heads]. oneDNN's fast matmul takes dense operands,
// but q, k and v are strided parts of qkv. So they are copied into the workspace first; the output needs no copy.
#include <algorithm>

#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;
using Tag = memory::format_tag;

struct BatchedAttentionProduct::State {
    Kind kind;
    AttentionShape shape;
    std::size_t element_bytes;
    dnnl::matmul::primitive_desc desc;
    Call call;

    std::size_t part_bytes() const {
        return static_cast<std::size_t>(shape.batch * shape.heads * shape.seq * shape.head_size) * element_bytes;
    }
    std::size_t scratchpad_offset() const { return (kind == Kind::scores ? 2 : 1) * ((part_bytes() + 63) / 64 * 64); }

    /// Copies q, k or v (part 0, 1, 2) from qkv to [batch, heads, seq, head_size], dense.
    void copy_part(const void* qkv, int part, char* to) const {
        // No structured binding, because clang 19 captures none in an OpenMP region.
        const std::int64_t heads = shape.heads, seq = shape.seq, rows = shape.batch * heads * seq;
        const std::size_t row_bytes = static_cast<std::size_t>(shape.head_size) * element_bytes;
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            const std::int64_t position = row / (heads * seq) * seq + row % seq, head = row / seq % heads;
            const std::int64_t from = (position * 3 + part) * heads + head;
            std::copy_n(static_cast<const char*>(qkv) + static_cast<std::size_t>(from) * row_bytes, row_bytes,
                        to + static_cast<std::size_t>(row) * row_bytes);
        }
    }
};

BatchedAttentionProduct::BatchedAttentionProduct(Kind kind, const AttentionShape& shape, Precision precision,
                                                 bool upcast)
    : state_(std::make_unique<State>()) {
    onednn::require(precision);
    const DataType stored = storage_type(precision);
    const auto [batch, heads, seq, head_size] = shape;
    const auto type = onednn::data_type(stored);
    const memory::dims rows = {batch, heads, seq, head_size}, square = {batch, heads, seq, seq};
    const memory::desc q(rows, type, Tag::abcd), v(rows, type, Tag::abcd), probabilities(square, type, Tag::abcd);
    const memory::desc k_transposed({batch, heads, head_size, seq}, type, Tag::abdc);
    const memory::desc scores(square, upcast ? memory::data_type::f32 : type, Tag::abcd);
    const memory::desc context(rows, type, Tag::acbd);  // [batch, seq, heads, head_size] in memory

    state_->kind = kind;
    state_->shape = shape;
    state_->element_bytes = size_of(stored);
    onednn::create("attention product", [&] {
        const auto attr = onednn::attributes();
        state_->desc = kind == Kind::scores
                           ? dnnl::matmul::primitive_desc(onednn::engine(), q, k_transposed, scores, attr)
                           : dnnl::matmul::primitive_desc(onednn::engine(), probabilities, v, context, attr);
        state_->call = Call(dnnl::matmul(state_->desc), {{DNNL_ARG_SRC, state_->desc.src_desc()},
                                                         {DNNL_ARG_WEIGHTS, state_->desc.weights_desc()},
                                                         {DNNL_ARG_DST, state_->desc.dst_desc()},
                                                         {DNNL_ARG_SCRATCHPAD, state_->desc.scratchpad_desc()}});
    });
}

BatchedAttentionProduct::~BatchedAttentionProduct() = default;

std::size_t BatchedAttentionProduct::workspace_bytes() const {
    return state_->scratchpad_offset() + state_->desc.scratchpad_desc().get_size();
}

void BatchedAttentionProduct::run_scores(In<"qkv"> qkv, Out<"scores"> scores, void* workspace) const {
    char* const first = static_cast<char*>(workspace);
    char* const second = first + state_->scratchpad_offset() / 2;
    state_->copy_part(qkv, 0, first);
    state_->copy_part(qkv, 1, second);
    onednn::check(state_->call.run({first, second, scores, first + state_->scratchpad_offset()}), "attention scores");
}

void BatchedAttentionProduct::run_context(In<"probabilities"> probabilities, In<"qkv"> qkv, Out<"out"> out,
                                          void* workspace) const {
    char* const first = static_cast<char*>(workspace);
    state_->copy_part(qkv, 2, first);
    onednn::check(state_->call.run({probabilities, first, out, first + state_->scratchpad_offset()}),
                  "attention context");
}

std::string BatchedAttentionProduct::implementation() const { return state_->desc.impl_info_str(); }

}  // namespace kbench::cpu
