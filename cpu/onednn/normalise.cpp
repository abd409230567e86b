// Layer norm through oneDNN's primitive.
#include "cpu/onednn/onednn.h"
#include "cpu/onednn/primitive.h"
#include "cpu/vector.h"

namespace kbench::cpu {

using dnnl::memory;
using onednn::Call;

struct Normalise::State {
    dnnl::layer_normalization_forward::primitive_desc desc;
    Call call;
    std::int64_t width;
    DataType stored;
    std::size_t scratchpad_bytes;  ///< rounded up, so that what follows it is aligned
};

Normalise::Normalise(const LayerNorm& norm, Precision precision) : state_(std::make_unique<State>()) {
    onednn::require(precision);
    state_->width = norm.width;
    state_->stored = storage_type(precision);
    const memory::desc x({norm.rows, norm.width}, onednn::data_type(state_->stored), memory::format_tag::ab);
    onednn::create("layer norm", [&] {
        using dnnl::normalization_flags;
        state_->desc = {onednn::engine(),
                        dnnl::prop_kind::forward_inference,
                        x,
                        x,
                        static_cast<float>(norm.epsilon),
                        normalization_flags::use_scale | normalization_flags::use_shift,
                        onednn::attributes()};
        const memory::desc parameter = state_->desc.weights_desc();  // scale and shift have the same
        state_->call = Call(dnnl::layer_normalization_forward(state_->desc),
                            {{DNNL_ARG_SRC, x},
                             {DNNL_ARG_SCALE, parameter},
                             {DNNL_ARG_SHIFT, parameter},
                             {DNNL_ARG_DST, x},
                             {DNNL_ARG_SCRATCHPAD, state_->desc.scratchpad_desc()}});
    });
    state_->scratchpad_bytes = (state_->desc.scratchpad_desc().get_size() + 63) / 64 * 64;
}

Normalise::~Normalise() = default;

std::size_t Normalise::workspace_bytes() const {
    return state_->scratchpad_bytes + 2 * static_cast<std::size_t>(state_->width) * sizeof(float);
}

void Normalise::run(In<"x"> x, In<"weight"> weight, In<"bias"> bias, Out<"out"> out, void* workspace) const {
    // oneDNN 3.2 takes scale and shift only in fp32.
    float* scale = reinterpret_cast<float*>(static_cast<char*>(workspace) + state_->scratchpad_bytes);
    float* shift = scale + state_->width;
    with_element(state_->stored, [&]<class T>(T) {
        vectorised([=, width = state_->width, w = static_cast<const T*>(weight), b = static_cast<const T*>(bias)] {
#pragma omp simd
            for (std::int64_t c = 0; c < width; ++c) {
                scale[c] = static_cast<float>(load(w[c]));
                shift[c] = static_cast<float>(load(b[c]));
            }
        });
    });
    onednn::check(state_->call.run({x, scale, shift, out, workspace}), "layer norm");
}

std::string Normalise::implementation() const { return state_->desc.impl_info_str(); }

}  // namespace kbench::cpu
