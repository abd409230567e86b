// The convolution as oneDNN's primitive. Its fast kernels do not take NCHW, so x and out are reordered from and to the
// layouts that it picks (format_tag::any) where these differ: 6 % of the time of n8c32h81w500k32r21s11u2p10q5 in fp32.
#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;
using Tag = memory::format_tag;

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct Convolution::State {
    dnnl::convolution_forward::primitive_desc desc;
    Call call, pack, to_x, from_out;
    std::int64_t out_channels;
    DataType stored;
    /// The workspace, in this order: one scratchpad for all calls, the bias in fp32, x and out in oneDNN's layouts. 0
    /// bytes for what needs no copy.
    std::size_t scratchpad_bytes, bias_bytes, x_bytes, out_bytes;

    /// Makes a reorder and returns its bytes of the workspace; makes none where the layouts are equal.
    std::size_t reorder(Call& reorder_call, const memory::desc& from, const memory::desc& to, std::size_t needed);
};

std::size_t Convolution::State::reorder(Call& reorder_call, const memory::desc& from, const memory::desc& to,
                                        std::size_t needed) {
    if (from == to) return 0;
    const dnnl::reorder::primitive_desc made(onednn::engine(), from, onednn::engine(), to, onednn::attributes());
    scratchpad_bytes = std::max(scratchpad_bytes, aligned(made.scratchpad_desc().get_size()));
    reorder_call = Call(dnnl::reorder(made),
                        {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()}});
    return aligned(needed);
}

Convolution::Convolution(const Conv2d& op, Precision precision) : state_(std::make_unique<State>()) {
    onednn::require(precision);
    State& s = *state_;
    s.stored = storage_type(precision);
    s.out_channels = op.out_channels;
    const auto type = onednn::data_type(s.stored);
    const auto any = [&](const memory::desc& plain) { return memory::desc(plain.get_dims(), type, Tag::any); };
    const memory::desc x({op.batch, op.in_channels, op.height, op.width}, type, Tag::nchw);
    const memory::desc weight({op.out_channels, op.in_channels, op.kernel_h, op.kernel_w}, type, Tag::oihw);
    const memory::desc out({op.batch, op.out_channels, op.out_height(), op.out_width()}, type, Tag::nchw);
    const memory::desc bias({op.out_channels}, memory::data_type::f32, Tag::a);
    const memory::dims strides{op.stride_h, op.stride_w}, padding{op.pad_h, op.pad_w};

    onednn::create("convolution", [&] {
        const auto inference = dnnl::prop_kind::forward_inference;
        // not Winograd, whose error bound is different
        const auto direct = dnnl::algorithm::convolution_direct;
        const auto attr = onednn::attributes();
        s.desc =
            op.bias
                ? dnnl::convolution_forward::primitive_desc(onednn::engine(), inference, direct, any(x), any(weight),
                                                            bias, any(out), strides, padding, padding, attr)
                : dnnl::convolution_forward::primitive_desc(onednn::engine(), inference, direct, any(x), any(weight),
                                                            any(out), strides, padding, padding, attr);
        std::vector<Call::Argument> arguments = {{DNNL_ARG_SRC, s.desc.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, s.desc.weights_desc()},
                                                 {DNNL_ARG_DST, s.desc.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, s.desc.scratchpad_desc()}};
        if (op.bias) arguments.push_back({DNNL_ARG_BIAS, bias});
        s.call = Call(dnnl::convolution_forward(s.desc), arguments);
        s.scratchpad_bytes = aligned(s.desc.scratchpad_desc().get_size());
        s.bias_bytes = op.bias && s.stored != DataType::fp32 ? aligned(bias.get_size()) : 0;
        s.x_bytes = s.reorder(s.to_x, x, s.desc.src_desc(), s.desc.src_desc().get_size());
        s.out_bytes = s.reorder(s.from_out, s.desc.dst_desc(), out, s.desc.dst_desc().get_size());

        const dnnl::reorder::primitive_desc pack(onednn::engine(), weight, onednn::engine(), s.desc.weights_desc());
        s.pack = Call(dnnl::reorder(pack), {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, s.desc.weights_desc()}});
    });
}

Convolution::~Convolution() = default;

std::size_t Convolution::packed_bytes() const { return state_->desc.weights_desc().get_size(); }

void Convolution::pack(const void* plain, void* packed) const {
    onednn::check(state_->pack.run({plain, packed}), "packing a convolution's weight");
}

std::size_t Convolution::workspace_bytes() const {
    return state_->scratchpad_bytes + state_->bias_bytes + state_->x_bytes + state_->out_bytes;
}

void Convolution::run(const void* x, const void* packed_weight, const void* bias, void* out, void* workspace) const {
    const State& s = *state_;
    char* const scratchpad = static_cast<char*>(workspace);
    char* const bias_in_fp32 = scratchpad + s.scratchpad_bytes;
    char* const own_x = bias_in_fp32 + s.bias_bytes;
    void* const made = s.out_bytes > 0 ? own_x + s.x_bytes : out;
    if (s.bias_bytes > 0) {
        with_element(s.stored, [&]<class T>(T) {
            auto* to = reinterpret_cast<float*>(bias_in_fp32);
            const T* from = static_cast<const T*>(bias);
            for (std::int64_t k = 0; k < s.out_channels; ++k) to[k] = static_cast<float>(load(from[k]));
        });
        bias = bias_in_fp32;
    }
    if (s.x_bytes > 0) {
        onednn::check(s.to_x.run({x, own_x, scratchpad}), "reordering x");
        x = own_x;
    }
    const dnnl_status_t status = bias != nullptr ? s.call.run({x, packed_weight, made, scratchpad, bias})
                                                 : s.call.run({x, packed_weight, made, scratchpad});
    onednn::check(status, "convolution");
    if (s.out_bytes > 0) onednn::check(s.from_out.run({made, out, scratchpad}), "reordering out");
}

std::string Convolution::implementation() const { return state_->desc.impl_info_str(); }

}  // namespace kbench::cpu
