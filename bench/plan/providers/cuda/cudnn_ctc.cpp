#include "bench/plan/providers/cuda/cudnn_ctc.h"

#include <limits>

#include "bench/plan/providers/cuda/cudnn_convolution.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "kernels/check.h"
#include "kernels/ctc.h"

namespace kbench::cudnn {
namespace {

using LossDescriptor =
    Descriptor<cudnnCTCLossDescriptor_t, cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor>;
using OperationDescriptor =
    Descriptor<cudnnOpTensorDescriptor_t, cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor>;

constexpr std::size_t workspace_limit_bytes = convolution_workspace_bytes;  ///< the provider's
constexpr std::int64_t most_targets = 256;  ///< "up to 256": cuDNN's documentation of cudnnSetCTCLossDescriptor_v9

/// cuDNN wants targets one after another and lengths in steps, which a kernel of kbench's makes of the operands: no
/// host has to know them. Its gradient is that of the sum of the losses and lies apart from the logits; one more call
/// scales it into their place.
class CtcComputation final : public Computation {
  public:
    CtcComputation(const Ctc& op, Direction direction, std::shared_ptr<cudnnContext> handle, bool one_order)
        : op_(op),
          gradient_(direction == Direction::bwd),
          algorithm_(one_order ? CUDNN_CTC_LOSS_ALGO_DETERMINISTIC : CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC),
          handle_(std::move(handle)),
          rows_(make_tensor(Precision::fp32, 1, 1, op.steps * op.batch, op.labels)),
          number_(make_tensor(Precision::fp32, 1, 1, 1, 1)) {
        const int dimensions[] = {static_cast<int>(op.steps), static_cast<int>(op.batch), static_cast<int>(op.labels)};
        const int strides[] = {dimensions[1] * dimensions[2], dimensions[2], 1};
        check(cudnnSetTensorNdDescriptor(of_logits_, CUDNN_DATA_FLOAT, 3, dimensions, strides),
              "cudnnSetTensorNdDescriptor");
        // A sequence without an alignment has a gradient of 0, as the op wants it.
        check(cudnnSetCTCLossDescriptor_v9(loss_, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                           CUDNN_CTC_ZERO_OOB_GRADIENTS, static_cast<int>(op.target)),
              "cudnnSetCTCLossDescriptor_v9");
        check(cudnnSetOpTensorDescriptor(multiply_, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN),
              "cudnnSetOpTensorDescriptor");
        if (const cudnnStatus_t status = cudnnGetCTCLossWorkspaceSize_v8(handle_.get(), algorithm_, loss_, of_logits_,
                                                                         of_gradients(), &own_bytes_);
            status != CUDNN_STATUS_SUCCESS)
            throw Unsupported(fmt::format("cuDNN's ctc: {}", cudnnGetErrorString(status)));
        if (workspace_bytes() > workspace_limit_bytes)
            throw Unsupported(fmt::format("its ctc wants a workspace of {} bytes, and has {}", workspace_bytes(),
                                          workspace_limit_bytes));
    }
    std::string implementation() const override {
        return algorithm_ == CUDNN_CTC_LOSS_ALGO_DETERMINISTIC ? "cudnnCTCLoss_v8, deterministic"
                                                               : "cudnnCTCLoss_v8, non-deterministic";
    }
    std::size_t workspace_bytes() const override { return own_at() + own_bytes_; }
    /// The scale meets gradients that were rounded.
    int roundings() const override { return gradient_ ? 2 : 1; }
    void run(std::span<void* const> pointers, void* workspace, void* on) const override {
        OperandCursor in(pointers);
        void* logits = in.next();
        const auto* lengths = in.next<const std::int32_t>();
        const auto* targets = in.next<const std::int32_t>();
        const auto* target_lengths = in.next<const std::int32_t>();
        const void* loss_scale = in.next_if(gradient_);
        void* losses = in.next();
        auto* const memory = static_cast<std::byte*>(workspace);
        auto* const packed = reinterpret_cast<std::int32_t*>(memory);
        auto* const steps = reinterpret_cast<std::int32_t*>(memory + steps_at());
        void* const gradients = gradient_ ? memory + gradients_at() : nullptr;
        const auto stream = static_cast<cudaStream_t>(on);
        check(cudnnSetStream(handle_.get(), stream), "cudnnSetStream");
        cuda::ctc_pack(op_, lengths, targets, target_lengths, packed, steps, stream);
        // cuDNN does not say what it writes past a sequence's end; the op needs 0 there.
        if (gradient_) KBENCH_CUDA(cudaMemsetAsync(gradients, 0, gradient_bytes(), stream));
        check(cudnnCTCLoss_v8(handle_.get(), algorithm_, loss_, of_logits_, logits, packed, target_lengths, steps,
                              losses, of_gradients(), gradients, own_bytes_, memory + own_at()),
              "cudnnCTCLoss_v8");
        if (!gradient_) return;
        const Factor one(Precision::fp32, 1), share(Precision::fp32, 1 / static_cast<double>(op_.batch)),
            zero(Precision::fp32, 0);
        check(cudnnOpTensor(handle_.get(), multiply_, one.get(), rows_.get(), gradients, share.get(), number_.get(),
                            loss_scale, zero.get(), rows_.get(), logits),
              "cudnnOpTensor");
    }

  private:
    cudnnTensorDescriptor_t of_gradients() const { return gradient_ ? of_logits_ : cudnnTensorDescriptor_t{}; }
    static std::size_t aligned(std::int64_t bytes) { return static_cast<std::size_t>((bytes + 255) / 256 * 256); }
    static constexpr std::int64_t whole = sizeof(std::int32_t), number = sizeof(float);
    std::size_t gradient_bytes() const { return aligned(op_.steps * op_.batch * op_.labels * number); }
    /// Behind the packed targets lie the steps, the gradients and cuDNN's own.
    std::size_t steps_at() const { return aligned(op_.batch * op_.target * whole); }
    std::size_t gradients_at() const { return steps_at() + aligned(op_.batch * whole); }
    std::size_t own_at() const { return gradients_at() + (gradient_ ? gradient_bytes() : 0); }

    Ctc op_;
    bool gradient_;
    cudnnCTCLossAlgo_t algorithm_;
    std::shared_ptr<cudnnContext> handle_;
    TensorDescriptor of_logits_;
    Tensor rows_, number_;
    LossDescriptor loss_;
    OperationDescriptor multiply_;
    std::size_t own_bytes_ = 0;
};

}  // namespace

std::string no_such_ctc(const Ctc& op, const Step& step, Precision) {
    if (step.padded_columns > op.labels) return "its ctc takes no padded rows of logits";
    if (op.target > most_targets)
        return fmt::format("targets of {} labels: its ctc takes at most {}", op.target, most_targets);
    if (const std::int64_t elements = op.steps * op.batch * op.labels; elements > std::numeric_limits<int>::max())
        return fmt::format("{} logits: its ctc takes less than 2^31", elements);
    return "";
}

std::unique_ptr<Computation> make_ctc(const Ctc& op, Direction direction, const std::shared_ptr<cudnnContext>& handle,
                                      bool one_order) {
    return std::make_unique<CtcComputation>(op, direction, handle, one_order);
}

}  // namespace kbench::cudnn
