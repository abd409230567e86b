// The shape of multi-head self-attention, shared by the fused op and the parts of the unfused one.
//
//     const kbench::AttentionShape shape{.batch = 1, .heads = 20, .seq = 1024, .head_size = 64};
//     shape.text();          // "b1h20s1024d64"
//     shape.qkv();           // the operand [1024, 3840] that one projection writes
//     shape.causal_pairs();  // 20 * 1024 * 1025 / 2
#pragma once

#include "kbench/op.h"

namespace kbench {

/// qkv is [batch * seq, 3 * heads * head_size]: in each row first all of q, then all of k, then all of v, each by head.
struct AttentionShape {
    std::int64_t batch, heads, seq, head_size;
    bool operator==(const AttentionShape&) const = default;

    static AttentionShape parse(ShapeText& shape) {
        return {shape.size('b'), shape.size('h'), shape.size('s'), shape.size('d')};
    }
    std::string text() const { return shape_text({{'b', batch}, {'h', heads}, {'s', seq}, {'d', head_size}}); }

    std::int64_t rows() const { return batch * seq; }
    std::int64_t width() const { return heads * head_size; }
    std::int64_t score_rows() const { return batch * heads * seq; }
    /// Rows of scores: one for each query of each head.
    double queries() const {
        return static_cast<double>(batch) * static_cast<double>(heads) * static_cast<double>(seq);
    }
    /// (query, key) pairs with key <= query.
    double causal_pairs() const { return queries() * static_cast<double>(seq + 1) / 2; }
    /// q k^T, or p v, as one batched product. It covers all (query, key) pairs; only the causal ones are useful.
    Work product_work() const {
        const double pair = 2 * static_cast<double>(head_size), all = queries() * static_cast<double>(seq);
        return {causal_pairs() * pair, all * pair, (all - causal_pairs()) * pair};
    }

    OperandSpec qkv() const { return input("qkv", rows(), 3 * width()); }
    OperandSpec out() const { return output("out", rows(), width()); }
    /// [batch * heads * seq, seq]. When `causal`, entries above the diagonal of each head hold -infinity.
    OperandSpec scores(std::string_view name, OperandUse use, bool upcast, bool causal = false) const {
        OperandSpec spec{.name = name, .use = use, .rows = score_rows(), .columns = seq, .scores = true};
        if (upcast) spec.element = ElementType::at_least_fp32;
        if (causal) spec.contents = {Contents::Kind::causal, 1, seq};
        return spec;
    }
};

/// How unfused attention stores scores: in the precision's storage type, or in at least fp32 when `upcast`.
inline DataType scores_type(bool upcast, Precision precision) {
    return data_type(upcast ? ElementType::at_least_fp32 : ElementType::storage, precision);
}

}  // namespace kbench
