// A GEMM with its epilogue as post-ops. The weight is packed once, in the layout that oneDNN picks (format_tag::any).
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;

struct Matmul::State {
    dnnl::matmul::primitive_desc desc;
    Call call, pack;
    std::int64_t n;
    std::size_t out_bytes, scratchpad_bytes;  ///< scratchpad rounded up, so that what follows it is aligned
    bool residual, bias_in_fp32;
};

namespace {

/// The residual goes into `out` first. A sum post-op reads the destination, so the residual may be the destination. (In
/// a binary post-op it must not be: with k in several chunks, partial sums overwrite it before it is read.)
void copy_in_parallel(const void* from, void* to, std::size_t bytes) {
#pragma omp parallel
    {
        const auto threads = static_cast<std::size_t>(omp_get_num_threads());
        const std::size_t share = (bytes / threads / 64 + 1) * 64;
        const std::size_t begin = std::min(bytes, share * static_cast<std::size_t>(omp_get_thread_num()));
        const std::size_t end = std::min(bytes, begin + share);
        std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, end - begin);
    }
}

/// See the developer guide, "Eltwise": swish is x s(alpha x); relu's alpha is its slope below zero. gelu_fast differs
/// from gelu_tanh by less than fp32 resolves.
void append(dnnl::post_ops& post_ops, Activation activation) {
    using enum dnnl::algorithm;
    switch (activation) {
        case Activation::gelu_tanh:
        case Activation::gelu_fast: return post_ops.append_eltwise(eltwise_gelu_tanh, 0, 0);
        case Activation::gelu_erf: return post_ops.append_eltwise(eltwise_gelu_erf, 0, 0);
        case Activation::quick_gelu: return post_ops.append_eltwise(eltwise_swish, 1.702f, 0);
        case Activation::relu: return post_ops.append_eltwise(eltwise_relu, 0, 0);
        case Activation::silu: return post_ops.append_eltwise(eltwise_swish, 1, 0);
        case Activation::tanh: return post_ops.append_eltwise(eltwise_tanh, 0, 0);
    }
}

}  // namespace

Matmul::Matmul(const Gemm& gemm, Precision precision, bool bias, std::optional<Activation> activation, bool residual)
    : state_(std::make_unique<State>()) {
    onednn::require(precision);
    const DataType stored = storage_type(precision);
    const auto type = onednn::data_type(stored);
    const memory::desc x({gemm.m, gemm.k}, type, memory::format_tag::ab);
    const memory::desc any_w({gemm.k, gemm.n}, type, memory::format_tag::any);
    const memory::desc plain_w({gemm.k, gemm.n}, type,
                               gemm.weight_transposed ? memory::format_tag::ba : memory::format_tag::ab);
    const memory::desc out({gemm.m, gemm.n}, type, memory::format_tag::ab);
    // With bias and destination both in fp16, oneDNN 3.2 has only its reference loops.
    const bool bias_in_fp32 = bias && stored == DataType::fp16;
    const memory::desc bias_desc =
        memory::desc({1, gemm.n}, bias_in_fp32 ? memory::data_type::f32 : type, memory::format_tag::ab);

    dnnl::post_ops post_ops;
    if (activation) append(post_ops, *activation);
    if (residual) post_ops.append_sum(1);

    onednn::create("matmul", [&] {
        const auto attr = onednn::attributes(post_ops);
        state_->desc = bias ? dnnl::matmul::primitive_desc(onednn::engine(), x, any_w, bias_desc, out, attr)
                            : dnnl::matmul::primitive_desc(onednn::engine(), x, any_w, out, attr);
        const auto& desc = state_->desc;
        std::vector<Call::Argument> arguments = {{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                 {DNNL_ARG_DST, desc.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}};
        if (bias) arguments.push_back({DNNL_ARG_BIAS, desc.bias_desc()});
        state_->call = Call(dnnl::matmul(desc), arguments);

        const dnnl::reorder::primitive_desc reorder(onednn::engine(), plain_w, onednn::engine(), desc.weights_desc());
        state_->pack = Call(dnnl::reorder(reorder), {{DNNL_ARG_FROM, plain_w}, {DNNL_ARG_TO, desc.weights_desc()}});
    });
    state_->n = gemm.n;
    state_->out_bytes = out.get_size();
    state_->scratchpad_bytes = (state_->desc.scratchpad_desc().get_size() + 63) / 64 * 64;
    state_->bias_in_fp32 = bias_in_fp32;
    state_->residual = residual;
}

Matmul::~Matmul() = default;

std::size_t Matmul::packed_bytes() const { return state_->desc.weights_desc().get_size(); }

void Matmul::pack(const void* plain, void* packed) const {
    onednn::check(state_->pack.run({plain, packed}), "packing a weight");
}

std::size_t Matmul::workspace_bytes() const {
    return state_->scratchpad_bytes + (state_->bias_in_fp32 ? static_cast<std::size_t>(state_->n) * sizeof(float) : 0);
}

void Matmul::run(const void* x, const void* packed_w, const void* bias, const void* residual, void* out,
                 void* workspace) const {
    if (state_->residual && residual != out) copy_in_parallel(residual, out, state_->out_bytes);
    if (state_->bias_in_fp32) {
        float* widened = reinterpret_cast<float*>(static_cast<char*>(workspace) + state_->scratchpad_bytes);
        vectorised([widened, n = state_->n, stored = static_cast<const Float16*>(bias)] {
#pragma omp simd
            for (std::int64_t c = 0; c < n; ++c) widened[c] = load(stored[c]);
        });
        bias = widened;
    }
    const dnnl_status_t status =
        bias ? state_->call.run({x, packed_w, out, workspace, bias}) : state_->call.run({x, packed_w, out, workspace});
    onednn::check(status, "matmul");
}

std::string Matmul::implementation() const { return state_->desc.impl_info_str(); }

struct PlainMatmul::State {
    dnnl::matmul::primitive_desc desc;
    Call call;
};

PlainMatmul::PlainMatmul(const Gemm::Product& p, Precision precision, bool accumulates)
    : state_(std::make_unique<State>()) {
    onednn::require(precision);
    const auto type = onednn::data_type(storage_type(precision));
    const auto strides = [](bool transposed, std::int64_t stride) {
        return transposed ? memory::dims{1, stride} : memory::dims{stride, 1};
    };
    const memory::desc left({p.m, p.k}, type, strides(p.left_transposed, p.left_stride)),
        right({p.k, p.n}, type, strides(p.right_transposed, p.right_stride)),
        out({p.m, p.n}, type, strides(false, p.out_stride));
    dnnl::post_ops post_ops;
    if (accumulates) post_ops.append_sum(1);
    onednn::create("matmul", [&] {
        state_->desc = dnnl::matmul::primitive_desc(onednn::engine(), left, right, out, onednn::attributes(post_ops));
        const auto& desc = state_->desc;
        state_->call = Call(dnnl::matmul(desc), {{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                 {DNNL_ARG_DST, desc.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
    });
}

PlainMatmul::~PlainMatmul() = default;
std::size_t PlainMatmul::workspace_bytes() const { return state_->desc.scratchpad_desc().get_size(); }

void PlainMatmul::run(const void* left, const void* right, void* out, void* workspace) const {
    onednn::check(state_->call.run({left, right, out, workspace}), "matmul");
}

std::string PlainMatmul::implementation() const { return state_->desc.impl_info_str(); }

}  // namespace kbench::cpu
