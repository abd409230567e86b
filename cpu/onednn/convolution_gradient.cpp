// The convolution's backward as oneDNN's primitives. Its inputs are reordered from NCHW within each run, weights too,
// because they change from step to step.
#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"
#include "kbench/error.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;
using Tag = memory::format_tag;

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// to = from, rounded; or to += from where it accumulates.
void store_sums(DataType type, std::int64_t count, const float* from, bool accumulates, void* to) {
    with_element(type, [&]<class T>(T) {
        T* out = static_cast<T*>(to);
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < count; ++i) {
            const auto before = accumulates ? load(out[i]) : Compute<T>(0);
            store(out[i], static_cast<Compute<T>>(from[i]) + before);
        }
    });
}

/// An operand in oneDNN's layout: its part of the workspace and the reorder to or from it. Both are missing where the
/// plain layout will do.
struct Reordered {
    Call call;
    std::size_t bytes = 0;
};

}  // namespace

struct ConvolutionGradient::State {
    Conv2d op;
    DataType stored;
    Call call;
    std::string implementation;
    Reordered first, second, result;
    std::size_t scratchpad_bytes = 0, dw_bytes = 0, db_bytes = 0;  ///< dw, db: sums in fp32

    Reordered reordered(const memory::desc& from, const memory::desc& to) {
        if (from == to) return {};
        const dnnl::reorder::primitive_desc made(onednn::engine(), from, onednn::engine(), to, onednn::attributes());
        scratchpad_bytes = std::max(scratchpad_bytes, aligned(made.scratchpad_desc().get_size()));
        return {Call(dnnl::reorder(made),
                     {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()}}),
                aligned(std::max(from.get_size(), to.get_size()))};
    }
    /// The operand as the primitive wants it, reordered into `memory` if need be.
    static const void* ready(const Reordered& reorder, const void* plain, char* memory, char* scratchpad) {
        if (reorder.bytes == 0) return plain;
        onednn::check(reorder.call.run({plain, memory, scratchpad}), "reordering a convolution's operand");
        return memory;
    }
};

ConvolutionGradient::ConvolutionGradient(const Conv2d& op, Direction direction, Precision precision)
    : state_(std::make_unique<State>(State{op, storage_type(precision), {}, {}, {}, {}, {}})) {
    onednn::require(precision);
    State& s = *state_;
    const auto type = onednn::data_type(s.stored), fp32 = memory::data_type::f32;
    const auto any = [](const memory::desc& plain) {
        return memory::desc(plain.get_dims(), plain.get_data_type(), Tag::any);
    };
    const memory::desc x({op.batch, op.in_channels, op.height, op.width}, type, Tag::nchw);
    const memory::desc weight({op.out_channels, op.in_channels, op.kernel_h, op.kernel_w}, type, Tag::oihw);
    const memory::desc dw(weight.get_dims(), fp32, Tag::oihw), db({op.out_channels}, fp32, Tag::a);
    const memory::desc dy({op.batch, op.out_channels, op.out_height(), op.out_width()}, type, Tag::nchw);
    const memory::dims strides{op.stride_h, op.stride_w}, padding{op.pad_h, op.pad_w};
    const auto attr = onednn::attributes();
    const auto direct = dnnl::algorithm::convolution_direct;  // not Winograd, whose error bound is different

    onednn::create("a convolution's backward", [&] {
        const dnnl::convolution_forward::primitive_desc forward(onednn::engine(), dnnl::prop_kind::forward_training,
                                                                direct, any(x), any(weight), any(dy), strides, padding,
                                                                padding, attr);
        if (direction == Direction::dgrad) {
            const dnnl::convolution_backward_data::primitive_desc desc(
                onednn::engine(), direct, any(x), any(weight), any(dy), strides, padding, padding, forward, attr);
            s.call = Call(dnnl::convolution_backward_data(desc), {{DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                                                                  {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                                  {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                                                                  {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
            s.implementation = desc.impl_info_str();
            s.scratchpad_bytes = aligned(desc.scratchpad_desc().get_size());
            s.first = s.reordered(dy, desc.diff_dst_desc());
            s.second = s.reordered(weight, desc.weights_desc());
            s.result = s.reordered(desc.diff_src_desc(), x);
            return;
        }
        using Desc = dnnl::convolution_backward_weights::primitive_desc;
        const Desc desc =
            op.bias
                ? Desc(onednn::engine(), direct, any(x), any(dw), db, any(dy), strides, padding, padding, forward, attr)
                : Desc(onednn::engine(), direct, any(x), any(dw), any(dy), strides, padding, padding, forward, attr);
        std::vector<Call::Argument> arguments = {{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                                                 {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}};
        if (op.bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, db});
        s.call = Call(dnnl::convolution_backward_weights(desc), arguments);
        s.implementation = desc.impl_info_str();
        s.scratchpad_bytes = aligned(desc.scratchpad_desc().get_size());
        s.first = s.reordered(x, desc.src_desc());
        s.second = s.reordered(dy, desc.diff_dst_desc());
        s.result = s.reordered(desc.diff_weights_desc(), dw);
        // fp32 that is not added to anything needs no second copy.
        const bool in_place = s.stored == DataType::fp32 && !op.accumulates;
        s.dw_bytes = in_place ? 0 : aligned(dw.get_size());
        s.db_bytes = in_place || !op.bias ? 0 : aligned(db.get_size());
    });
}

ConvolutionGradient::~ConvolutionGradient() = default;

std::size_t ConvolutionGradient::workspace_bytes() const {
    const State& s = *state_;
    return s.scratchpad_bytes + s.first.bytes + s.second.bytes + s.result.bytes + s.dw_bytes + s.db_bytes;
}

void ConvolutionGradient::run_dgrad(In<"dy"> dy, In<"weight"> weight, Out<"dx"> dx, void* workspace) const {
    const State& s = *state_;
    char* const scratchpad = static_cast<char*>(workspace);
    char* const own_dy = scratchpad + s.scratchpad_bytes;
    char* const own_weight = own_dy + s.first.bytes;
    char* const own_dx = own_weight + s.second.bytes;
    dy = State::ready(s.first, dy, own_dy, scratchpad);
    weight = State::ready(s.second, weight, own_weight, scratchpad);
    void* const made = s.result.bytes > 0 ? own_dx : dx.data();
    onednn::check(s.call.run({dy, weight, made, scratchpad}), "a convolution's dgrad");
    if (s.result.bytes > 0) onednn::check(s.result.call.run({made, dx, scratchpad}), "reordering dx");
}

void ConvolutionGradient::run_wgrad(In<"x"> x, In<"dy"> dy, Out<"dw"> dw, Out<"db?"> db, void* workspace) const {
    const State& s = *state_;
    char* const scratchpad = static_cast<char*>(workspace);
    char* const own_x = scratchpad + s.scratchpad_bytes;
    char* const own_dy = own_x + s.first.bytes;
    char* const own_dw = own_dy + s.second.bytes;
    char* const dw_sums = own_dw + s.result.bytes;
    char* const db_sums = dw_sums + s.dw_bytes;
    x = State::ready(s.first, x, own_x, scratchpad);
    dy = State::ready(s.second, dy, own_dy, scratchpad);
    void* const plain_dw = s.dw_bytes > 0 ? dw_sums : dw.data();
    void* const made_dw = s.result.bytes > 0 ? own_dw : plain_dw;
    void* const made_db = s.db_bytes > 0 ? db_sums : db.data();
    const dnnl_status_t status =
        db != nullptr ? s.call.run({x, dy, made_dw, scratchpad, made_db}) : s.call.run({x, dy, made_dw, scratchpad});
    onednn::check(status, "a convolution's wgrad");
    if (s.result.bytes > 0) onednn::check(s.result.call.run({made_dw, plain_dw, scratchpad}), "reordering dw");
    const auto store = [&](std::int64_t count, const void* sums, void* to) {
        store_sums(s.stored, count, static_cast<const float*>(sums), s.op.accumulates, to);
    };
    if (s.dw_bytes > 0) store(s.op.out_channels * s.op.taps(), plain_dw, dw);
    if (s.db_bytes > 0) store(s.op.out_channels, made_db, db);
}

std::string ConvolutionGradient::implementation() const { return state_->implementation; }

}  // namespace kbench::cpu
