// Binds the operands of a convolution, and of what it absorbs, to kbench's own kernels.
#include "bench/plan/providers/cuda/convolution_provider.h"

#include <utility>
#include <vector>

#include "bench/plan/bind.h"
#include "kernels/convolution/conv2d.h"
#include "kernels/convolution/conv2d_gradient.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

/// What stands behind a convolution of spectrograms.
const Absorbed chain{TimeMask::kind, BatchNorm::kind, TimeMask::kind, Hardtanh::kind, TimeMask::kind};

std::string why_not(const Conv2d& op, const Step& step, Precision) {
    for (std::size_t i = step.head + 1; i < step.ops.size(); ++i) {
        if (const auto* mask = step.ops[i].get_if<TimeMask>())
            if (*mask != TimeMask{op.batch, op.out_channels * op.out_height(), op.out_width(), mask->frames_per_step})
                return "its conv2d absorbs masks by image only";
        if (const auto* norm = step.ops[i].get_if<BatchNorm>()) {
            if (norm->training) return "its conv2d absorbs batch norms with running statistics only";
            if (norm->channels != op.out_channels || norm->height != op.out_height())
                return "its conv2d absorbs batch norms by filter only";
        }
    }
    return "";
}

/// Where the operands of a convolution stand, and those of what it absorbs.
class ConvolutionSlots {
  public:
    explicit ConvolutionSlots(Binding binding)
        : x_(binding.take("x", false)), weight_(binding.take("weight", false)), out_(binding.take("out", true)) {
        const Step& step = binding.step;
        epilogue_.chain = step.ops.size() > 1;
        const auto by_filter = [&](Vector vector, std::string_view name) {
            by_filter_.emplace_back(vector, binding.take(name, false));
        };
        if (step.as<Conv2d>().bias) by_filter(&Epilogue::bias, "bias");
        for (std::size_t i = step.head + 1; i < step.ops.size(); ++i) {
            if (const auto* mask = step.ops[i].get_if<TimeMask>()) {
                epilogue_.masks[lengths_.size()].frames_per_step = mask->frames_per_step;
                lengths_.push_back(binding.take("lengths", false));
            }
            if (const auto* norm = step.ops[i].get_if<BatchNorm>()) {
                by_filter(&Epilogue::weight, "weight");
                by_filter(&Epilogue::shift, "bias");
                by_filter(&Epilogue::mean, "running_mean");
                by_filter(&Epilogue::variance, "running_var");
                epilogue_.epsilon = norm->epsilon;
            }
            if (const auto* clip = step.ops[i].get_if<Hardtanh>()) {
                epilogue_.low = clip->low;
                epilogue_.high = clip->high;
            }
        }
        binding.expect_all_taken();
    }

    cuda::Conv2dPointers pointers(const Call& call) const {
        return {.x = x_.of(call), .weight = weight_.of(call), .out = out_.of(call), .workspace = call.workspace};
    }
    cuda::Conv2dEpilogue epilogue(const Call& call) const {
        cuda::Conv2dEpilogue epilogue = epilogue_;
        for (const auto& [vector, slot] : by_filter_) epilogue.*vector = slot.of(call);
        for (std::size_t i = 0; i < lengths_.size(); ++i)
            epilogue.masks[i].lengths = static_cast<const std::int32_t*>(lengths_[i].of(call));
        return epilogue;
    }

  private:
    using Epilogue = cuda::Conv2dEpilogue;
    using Vector = decltype(&Epilogue::bias);  ///< [out_channels]

    Slot x_, weight_, out_;
    std::vector<std::pair<Vector, Slot>> by_filter_;
    std::vector<Slot> lengths_;  ///< those of each mask
    Epilogue epilogue_;          ///< but for what the slots hold
};

std::unique_ptr<Computation> conv2d(const Conv2d& op, const Step& step, Precision precision) {
    return make_computation(
        cuda::conv2d_kernel_name(op, precision),
        [=, slots = ConvolutionSlots(Binding(step, precision))](const Call& call) {
            cuda::conv2d_forward(precision, op, slots.pointers(call), slots.epilogue(call),
                                 static_cast<cudaStream_t>(call.stream));
        },
        1, cuda::conv2d_workspace(op, precision));
}

std::unique_ptr<Computation> dgrad(const Conv2d& op, const Step& step, Precision precision) {
    return bound(cuda::conv2d_dgrad_kernel_name(op, precision), cuda::conv2d_dgrad, step, precision,
                 cuda::conv2d_dgrad_workspace(op, precision), cuda::conv2d_dgrad_spared_flops(op, precision));
}

std::unique_ptr<Computation> wgrad(const Conv2d& op, const Step& step, Precision precision) {
    return bound(cuda::conv2d_wgrad_kernel_name(op, precision), cuda::conv2d_wgrad, step, precision,
                 cuda::conv2d_wgrad_workspace(op, precision));
}

template <class Make>
ProviderOp gradient(Direction direction, Make make) {
    return Computes<Conv2d>{
        .directions = {direction},
        .why_not = [](const Conv2d& op, const Step&, Precision) { return cuda::conv2d_gradient_refusal(op); },
        .make = make};
}

}  // namespace

ProviderOp native_conv2d() { return Computes<Conv2d>{.absorbs = {chain}, .why_not = why_not, .make = conv2d}; }
ProviderOp native_conv2d_dgrad() { return gradient(Direction::dgrad, dgrad); }
ProviderOp native_conv2d_wgrad() { return gradient(Direction::wgrad, wgrad); }

}  // namespace kbench
