#include "tests/peers/recurrent_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

#include "bench/plan/data/convert.h"
#include "kernels/check.h"
#include "models/base/format.h"
#include "models/base/nearest.h"

namespace kbench::cudnn {
namespace {

constexpr int directions = 2;

/// What cuDNN says of the last call besides its status.
std::string reason_of(cudnnStatus_t status) {
    std::array<char, 512> text{};
    cudnnGetLastErrorString(text.data(), text.size());
    const std::string more = one_line(text.data());
    return fmt::format("{}{}{}", cudnnGetErrorString(status), more.empty() ? "" : ": ", more);
}

/// For calls by which cuDNN says whether it takes a problem.
void accept(cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS) throw Unsupported(fmt::format("{}: {}", call, reason_of(status)));
}

using RnnDescriptor = Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using DataDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;

int index_of(std::span<const std::string_view> names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw UsageError(fmt::format("'{}': {}", name, nearest_name(name, names)));
    return static_cast<int>(found - names.begin());
}

cudnnRNNMode_t mode_of(Cell cell) {
    return cell == Cell::lstm ? CUDNN_LSTM : cell == Cell::gru ? CUDNN_GRU : CUDNN_RNN_TANH;
}

/// fp32 with FMA alone; tf32 is what cuDNN does with fp32 by default, and PyTorch where it may.
cudnnMathType_t math_of(Precision precision) {
    switch (precision) {
        case Precision::fp16:
        case Precision::bf16: return CUDNN_TENSOR_OP_MATH;
        case Precision::fp32: return CUDNN_FMA_MATH;
        default: return CUDNN_DEFAULT_MATH;
    }
}

std::int32_t whole(std::int64_t n) { return static_cast<std::int32_t>(n); }

std::size_t bytes_of(const RecurrentLayer& layer, std::int64_t columns) {
    const RecurrentProblem& p = layer.problem;
    return static_cast<std::size_t>(2 * p.steps * p.batch * columns) * size_of(layer.x.type);
}

}  // namespace

RecurrentMemory::RecurrentMemory(Device& on, const RecurrentLayer& layer)
    : device(on),
      x(on, layer.x.data.size()),
      y(on, bytes_of(layer, directions * layer.problem.hidden)),
      lengths(on, static_cast<std::size_t>(layer.problem.batch) * sizeof(std::int32_t)) {
    device.upload(x.data(), layer.x.data.data(), layer.x.data.size());
}

void RecurrentMemory::add_gradients(const RecurrentLayer& layer) {
    if (dy.bytes() > 0) return;
    const HostMatrix of_y = layer.dy();
    dy = DeviceBuffer(device, of_y.data.size());
    dx = DeviceBuffer(device, x.bytes());
    device.upload(dy.data(), of_y.data.data(), of_y.data.size());
}

class RecurrentCall::State {
  public:
    State(RecurrentMemory& memory, const Handle& handle, const RecurrentLayer& layer, Direction direction,
          std::string_view algorithm, std::string_view layout, std::int64_t steps)
        : memory_(memory), device_(memory.device), owner_(handle), layer_(layer), direction_(direction), steps_(steps) {
        const RecurrentProblem& p = layer.problem;
        const cudnnDataType_t type = tensor_type(p.precision);
        const bool padded = index_of(recurrent_layouts, layout) == 1;
        const auto which = static_cast<cudnnRNNAlgo_t>(index_of(recurrent_algorithms, algorithm));
        check(cudnnSetStream(handle_, stream()), "cudnnSetStream");
        check(cudnnSetDropoutDescriptor(dropout_, handle_, 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
        accept(cudnnSetRNNDescriptor_v8(rnn_, which, mode_of(p.cell), CUDNN_RNN_DOUBLE_BIAS, CUDNN_BIDIRECTIONAL,
                                        CUDNN_LINEAR_INPUT, type,
                                        p.precision == Precision::fp64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                                        math_of(p.precision), whole(p.input), whole(p.hidden), whole(p.hidden), 1,
                                        dropout_, padded ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED),
               "cudnnSetRNNDescriptor_v8");
        const std::vector<std::int32_t> lengths(static_cast<std::size_t>(p.batch), whole(steps));
        const auto data_layout =
            padded ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
        const auto describe = [&](const DataDescriptor& data, std::int64_t width) {
            accept(cudnnSetRNNDataDescriptor(data, type, data_layout, whole(steps), whole(p.batch), whole(width),
                                             lengths.data(), nullptr),
                   "cudnnSetRNNDataDescriptor");
        };
        describe(of_x_, p.input);
        describe(of_y_, directions * p.hidden);
        const int dimensions[] = {directions, whole(p.batch), whole(p.hidden)};
        const int strides[] = {dimensions[1] * dimensions[2], dimensions[2], 1};
        check(cudnnSetTensorNdDescriptor(of_h_, type, 3, dimensions, strides), "cudnnSetTensorNdDescriptor");
        if (which == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
            accept(cudnnBuildRNNDynamic(handle_, rnn_, whole(p.batch)), "cudnnBuildRNNDynamic");
        accept(cudnnGetRNNWeightSpaceSize(handle_, rnn_, &weight_bytes_), "cudnnGetRNNWeightSpaceSize");
        accept(cudnnGetRNNTempSpaceSizes(handle_, rnn_, mode(), of_x_, &workspace_bytes_, &reserve_bytes_),
               "cudnnGetRNNTempSpaceSizes");
        weights_ = DeviceBuffer(device_, weight_bytes_);
        if (workspace_bytes_ > 0) workspace_ = DeviceBuffer(device_, workspace_bytes_);
        if (reserve_bytes_ > 0) reserve_ = DeviceBuffer(device_, reserve_bytes_);
        device_.fill(weights_.data(), 0, weight_bytes_);
        place_weights();
        device_.upload(memory_.lengths.data(), lengths.data(), lengths.size() * sizeof lengths[0]);
        accept(forward(), "cudnnRNNForward");
        if (backward()) run_backward();
        device_.synchronize();
    }

    bool backward() const { return direction_ != Direction::fwd; }

    void prepare() {
        if (!backward()) return;
        KBENCH_CUDA(cudaMemcpyAsync(reserve_.data(), left_.data(), reserve_bytes_, cudaMemcpyDeviceToDevice, stream()));
        if (direction_ != Direction::wgrad) return;
        check(backward_data(), "cudnnRNNBackwardData_v8");
        KBENCH_CUDA(cudaMemsetAsync(dweights_.data(), 0, weight_bytes_, stream()));
    }

    void launch() {
        switch (direction_) {
            case Direction::bwd: check(backward_data(), "cudnnRNNBackwardData_v8"); return;
            case Direction::wgrad: check(backward_weights(), "cudnnRNNBackwardWeights_v8"); return;
            default: check(forward(), "cudnnRNNForward");
        }
    }

    Parts output() {
        prepare();
        if (direction_ == Direction::wgrad) {
            launch();
            device_.synchronize();
            return weight_gradients();
        }
        const RecurrentProblem& p = layer_.problem;
        const DeviceBuffer& made = backward() ? memory_.dx : memory_.y;
        const std::int64_t count = steps_ * p.batch * (backward() ? p.input : directions * p.hidden);
        device_.fill(made.data(), 0xff, static_cast<std::size_t>(count) * size_of(type_));  // NaN in every type
        launch();
        return {download(made.data(), count)};
    }

    std::size_t workspace_bytes() const { return workspace_bytes_; }

  private:
    cudaStream_t stream() const { return static_cast<cudaStream_t>(device_.stream()); }
    cudnnForwardMode_t mode() const { return backward() ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE; }
    const std::int32_t* lengths() const { return reinterpret_cast<const std::int32_t*>(memory_.lengths.data()); }

    cudnnStatus_t forward() {
        return cudnnRNNForward(handle_, rnn_, mode(), lengths(), of_x_, memory_.x.data(), of_y_, memory_.y.data(),
                               of_h_, nullptr, nullptr, of_h_, nullptr, nullptr, weight_bytes_, weights_.data(),
                               workspace_bytes_, workspace_.data(), reserve_bytes_, reserve_.data());
    }
    /// With the gradients of the first h and c, as PyTorch asks for them; those of the last ones are 0.
    cudnnStatus_t backward_data() {
        return cudnnRNNBackwardData_v8(handle_, rnn_, lengths(), of_y_, memory_.y.data(), memory_.dy.data(), of_x_,
                                       memory_.dx.data(), of_h_, nullptr, nullptr, dh_.data(), of_h_, nullptr, nullptr,
                                       dc_.data(), weight_bytes_, weights_.data(), workspace_bytes_, workspace_.data(),
                                       reserve_bytes_, reserve_.data());
    }
    cudnnStatus_t backward_weights() {
        return cudnnRNNBackwardWeights_v8(handle_, rnn_, CUDNN_WGRAD_MODE_ADD, lengths(), of_x_, memory_.x.data(),
                                          of_h_, nullptr, of_y_, memory_.y.data(), weight_bytes_, dweights_.data(),
                                          workspace_bytes_, workspace_.data(), reserve_bytes_, reserve_.data());
    }

    /// For the first time, keeping what the forward has left.
    void run_backward() {
        const RecurrentProblem& p = layer_.problem;
        memory_.add_gradients(layer_);
        const std::size_t state_bytes = static_cast<std::size_t>(directions * p.batch * p.hidden) * size_of(type_);
        dh_ = DeviceBuffer(device_, state_bytes);
        if (p.cell == Cell::lstm) dc_ = DeviceBuffer(device_, state_bytes);
        left_ = DeviceBuffer(device_, reserve_bytes_);
        dweights_ = DeviceBuffer(device_, weight_bytes_);
        KBENCH_CUDA(cudaMemcpyAsync(left_.data(), reserve_.data(), reserve_bytes_, cudaMemcpyDeviceToDevice, stream()));
        KBENCH_CUDA(cudaMemsetAsync(dweights_.data(), 0, weight_bytes_, stream()));
        accept(backward_data(), "cudnnRNNBackwardData_v8");
        accept(backward_weights(), "cudnnRNNBackwardWeights_v8");
    }

    /// Where cuDNN keeps each matrix [hidden, columns] and bias [hidden] of a gate, in weights or their gradients: of
    /// the input first, then of h. Its order of gates is PyTorch's: i, f, g, o and r, z, n.
    void for_each_gate(void* space, const std::function<void(std::size_t direction, bool of_input, std::int64_t gate,
                                                             void* matrix, void* bias)>& take) {
        const RecurrentProblem& p = layer_.problem;
        const auto gates = static_cast<std::int32_t>(gates_of(p.cell));
        for (std::int32_t direction = 0; direction < directions; ++direction)
            for (std::int32_t linear = 0; linear < 2 * gates; ++linear) {
                TensorDescriptor of_matrix, of_bias;
                void *matrix = nullptr, *bias = nullptr;
                check(cudnnGetRNNWeightParams(handle_, rnn_, direction, weight_bytes_, space, linear, of_matrix,
                                              &matrix, of_bias, &bias),
                      "cudnnGetRNNWeightParams");
                expect(of_matrix, p.hidden * (linear < gates ? p.input : p.hidden));
                expect(of_bias, p.hidden);
                take(static_cast<std::size_t>(direction), linear < gates, linear % gates, matrix, bias);
            }
    }
    static void expect(const TensorDescriptor& descriptor, std::int64_t elements) {
        cudnnDataType_t type{};
        int rank = 0;
        std::array<int, 3> dimensions{}, strides{};
        check(cudnnGetTensorNdDescriptor(descriptor, 3, &type, &rank, dimensions.data(), strides.data()),
              "cudnnGetTensorNdDescriptor");
        const std::int64_t found = std::int64_t{dimensions[0]} * dimensions[1] * dimensions[2];
        if (rank != 3 || found != elements)
            throw DeviceError(fmt::format("cuDNN keeps {} weights where there should be {}", found, elements));
    }
    void place_weights() {
        const auto upload_part = [this](void* at, const HostMatrix& matrix, std::int64_t first, std::int64_t count) {
            const std::size_t size = size_of(matrix.type);
            device_.upload(at, matrix.data.data() + static_cast<std::size_t>(first) * size,
                           static_cast<std::size_t>(count) * size);
        };
        const std::int64_t hidden = layer_.problem.hidden;
        for_each_gate(weights_.data(),
                      [&](std::size_t direction, bool of_input, std::int64_t gate, void* matrix, void* bias) {
                          const RecurrentLayer::Weights& from = layer_.weights[direction];
                          const HostMatrix& weight = of_input ? from.ih : from.hh;
                          upload_part(matrix, weight, gate * hidden * weight.columns, hidden * weight.columns);
                          upload_part(bias, of_input ? from.bias_ih : from.bias_hh, gate * hidden, hidden);
                      });
    }
    /// In the order of Parts: gates follow each other.
    Parts weight_gradients() {
        const std::int64_t hidden = layer_.problem.hidden;
        Parts parts(directions * 4);
        for_each_gate(dweights_.data(),
                      [&](std::size_t direction, bool of_input, std::int64_t, void* matrix, void* bias) {
                          const std::size_t first = direction * 4 + (of_input ? 0 : 1);
                          append(parts[first], matrix, hidden * (of_input ? layer_.problem.input : hidden));
                          append(parts[first + 2], bias, hidden);
                      });
        return parts;
    }
    void append(std::vector<double>& part, const void* from, std::int64_t count) {
        const std::vector<double> more = download(from, count);
        part.insert(part.end(), more.begin(), more.end());
    }
    std::vector<double> download(const void* from, std::int64_t count) {
        std::vector<std::byte> stored(static_cast<std::size_t>(count) * size_of(type_));
        device_.download(stored.data(), from, stored.size());
        std::vector<double> values(static_cast<std::size_t>(count));
        convert(type_, stored.data(), DataType::fp64, values.data(), count);
        return values;
    }

    RecurrentMemory& memory_;
    Device& device_;
    Handle owner_;
    cudnnHandle_t handle_ = owner_.get();
    const RecurrentLayer& layer_;
    DataType type_ = layer_.x.type;
    Direction direction_;
    std::int64_t steps_;
    DropoutDescriptor dropout_;
    RnnDescriptor rnn_;
    DataDescriptor of_x_, of_y_;
    TensorDescriptor of_h_;
    std::size_t weight_bytes_ = 0, workspace_bytes_ = 0, reserve_bytes_ = 0;
    DeviceBuffer weights_, workspace_, reserve_;
    DeviceBuffer left_;  ///< by the forward, in the reserve space
    DeviceBuffer dh_, dc_, dweights_;
};

RecurrentCall::RecurrentCall(RecurrentMemory& memory, const Handle& handle, const RecurrentLayer& layer,
                             Direction direction, std::string_view algorithm, std::string_view layout,
                             std::int64_t steps)
    : state_(std::make_unique<State>(memory, handle, layer, direction, algorithm, layout, steps)) {}
RecurrentCall::~RecurrentCall() = default;
bool RecurrentCall::has_preparation() const { return state_->backward(); }
void RecurrentCall::prepare() { state_->prepare(); }
void RecurrentCall::launch() { state_->launch(); }
Parts RecurrentCall::output() { return state_->output(); }
std::size_t RecurrentCall::workspace_bytes() const { return state_->workspace_bytes(); }

}  // namespace kbench::cudnn
