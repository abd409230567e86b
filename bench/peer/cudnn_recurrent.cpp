#include "bench/peer/cudnn_recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "bench/plan/data/convert.h"
#include "bench/plan/data/random.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "cpu/reference/reference.h"
#include "models/base/format.h"

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

template <class Pointer, cudnnStatus_t (*create)(Pointer*), cudnnStatus_t (*destroy)(Pointer)>
class Descriptor {
  public:
    Descriptor() { check(create(&raw_), "a descriptor of cuDNN"); }
    ~Descriptor() { destroy(raw_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    operator Pointer() const { return raw_; }

  private:
    Pointer raw_ = nullptr;
};
using RnnDescriptor = Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using DataDescriptor =
    Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor>;
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using DropoutDescriptor =
    Descriptor<cudnnDropoutDescriptor_t, cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor>;

int index_of(std::span<const std::string_view> names, std::string_view name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw UsageError(fmt::format("'{}': must be one of {}", name, fmt::join(names, ", ")));
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

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// ||a - b|| / ||b||, infinity where it is no number.
double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    const double error = std::sqrt(difference / size);
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

/// A matrix on the host, of the type that the problem stores.
struct HostMatrix {
    DataType type;
    std::int64_t rows, columns;
    std::vector<std::byte> data;

    HostMatrix(DataType stored, std::int64_t r, std::int64_t c, double deviation, const std::string& name)
        : type(stored), rows(r), columns(c), data(static_cast<std::size_t>(r * c) * size_of(stored)) {
        fill_normal(1, name, deviation, type, data.data(), rows * columns);
    }
    std::vector<double> wide() const {
        std::vector<double> values(static_cast<std::size_t>(rows * columns));
        convert(type, data.data(), DataType::fp64, values.data(), rows * columns);
        return values;
    }
};

struct Direction {
    HostMatrix weight_ih, weight_hh, bias_ih, bias_hh;
};

}  // namespace

class RecurrentPeer::State {
  public:
    State(Device& device, const Handle& handle, const RecurrentProblem& problem)
        : device_(device),
          handle_(handle),
          problem_(problem),
          type_(storage_type(problem.precision)),
          x_host_(type_, 2 * problem.steps * problem.batch, problem.input, 1, "x"),
          x_(device, x_host_.data.size()),
          y_(device, static_cast<std::size_t>(2 * problem.steps * problem.batch * directions * problem.hidden) *
                         size_of(type_)),
          lengths_(device, static_cast<std::size_t>(problem.batch) * sizeof(std::int32_t)) {
        const std::int64_t width = gates_of(problem.cell) * problem.hidden;
        const double initial = 1 / std::sqrt(3 * static_cast<double>(problem.hidden));  // as the op has them
        for (const std::string direction : {"", "_reverse"})
            layer_.push_back({HostMatrix(type_, width, problem.input, 0.3, "weight_ih" + direction),
                              HostMatrix(type_, width, problem.hidden, initial, "weight_hh" + direction),
                              HostMatrix(type_, 1, width, initial, "bias_ih" + direction),
                              HostMatrix(type_, 1, width, initial, "bias_hh" + direction)});
        device_.upload(x_.data(), x_host_.data.data(), x_host_.data.size());
    }

    /// An algorithm made ready for so many steps.
    class Call;

    std::vector<double> output(Call& call);
    std::vector<double> reference() const;
    /// Microseconds of a launch.
    double time_us(const std::function<void()>& launch, double seconds);

    Device& device_;
    Handle handle_;
    RecurrentProblem problem_;
    DataType type_;
    HostMatrix x_host_;  ///< of twice the steps
    DeviceBuffer x_, y_, lengths_;
    std::vector<Direction> layer_;
    std::vector<double> standard_;  ///< what the standard algorithm computes, once it is known
};

class RecurrentPeer::State::Call {
  public:
    Call(State& state, std::string_view algorithm, std::string_view layout, std::int64_t steps)
        : state_(state), steps_(steps) {
        const RecurrentProblem& p = state.problem_;
        const cudnnDataType_t type = tensor_type(p.precision);
        const bool padded = index_of(recurrent_layouts, layout) == 1;
        const auto which = static_cast<cudnnRNNAlgo_t>(index_of(recurrent_algorithms, algorithm));
        const auto whole = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
        check(cudnnSetDropoutDescriptor(dropout_, handle(), 0, nullptr, 0, 0), "cudnnSetDropoutDescriptor");
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
            accept(cudnnBuildRNNDynamic(handle(), rnn_, whole(p.batch)), "cudnnBuildRNNDynamic");
        accept(cudnnGetRNNWeightSpaceSize(handle(), rnn_, &weight_bytes_), "cudnnGetRNNWeightSpaceSize");
        accept(cudnnGetRNNTempSpaceSizes(handle(), rnn_, CUDNN_FWD_MODE_INFERENCE, of_x_, &workspace_bytes_,
                                         &reserve_bytes_),
               "cudnnGetRNNTempSpaceSizes");
        weights_ = DeviceBuffer(state.device_, weight_bytes_);
        if (workspace_bytes_ > 0) workspace_ = DeviceBuffer(state.device_, workspace_bytes_);
        if (reserve_bytes_ > 0) reserve_ = DeviceBuffer(state.device_, reserve_bytes_);
        state.device_.fill(weights_.data(), 0, weight_bytes_);
        place_weights();
        state.device_.upload(state.lengths_.data(), lengths.data(), lengths.size() * sizeof lengths[0]);
        // A first run, outside of any capture: it loads kernels, and an algorithm may refuse here only.
        accept(enqueue(), "cudnnRNNForward");
        state.device_.synchronize();
    }

    cudnnStatus_t enqueue() {
        check(cudnnSetStream(handle(), static_cast<cudaStream_t>(state_.device_.stream())), "cudnnSetStream");
        return cudnnRNNForward(handle(), rnn_, CUDNN_FWD_MODE_INFERENCE,
                               reinterpret_cast<const std::int32_t*>(state_.lengths_.data()), of_x_, state_.x_.data(),
                               of_y_, state_.y_.data(), of_h_, nullptr, nullptr, of_h_, nullptr, nullptr, weight_bytes_,
                               weights_.data(), workspace_bytes_, workspace_.data(), reserve_bytes_, reserve_.data());
    }
    void launch() { check(enqueue(), "cudnnRNNForward"); }
    std::size_t workspace_bytes() const { return workspace_bytes_; }
    std::int64_t steps() const { return steps_; }

  private:
    cudnnHandle_t handle() const { return state_.handle_.get(); }

    /// cuDNN has a matrix [hidden, columns] and a bias [hidden] for each gate: of the input first, then of h. Its order
    /// of gates is PyTorch's: i, f, g, o and r, z, n.
    void place_weights() {
        const RecurrentProblem& p = state_.problem_;
        const auto gates = static_cast<std::int32_t>(gates_of(p.cell));
        for (std::int32_t direction = 0; direction < directions; ++direction)
            for (std::int32_t linear = 0; linear < 2 * gates; ++linear) {
                const Direction& from = state_.layer_[static_cast<std::size_t>(direction)];
                const bool of_input = linear < gates;
                const HostMatrix& weight = of_input ? from.weight_ih : from.weight_hh;
                const HostMatrix& bias = of_input ? from.bias_ih : from.bias_hh;
                TensorDescriptor of_matrix, of_bias;
                void *matrix_at = nullptr, *bias_at = nullptr;
                check(cudnnGetRNNWeightParams(handle(), rnn_, direction, weight_bytes_, weights_.data(), linear,
                                              of_matrix, &matrix_at, of_bias, &bias_at),
                      "cudnnGetRNNWeightParams");
                expect(of_matrix, p.hidden * weight.columns);
                expect(of_bias, p.hidden);
                const std::int64_t first = linear % gates * p.hidden;
                upload_part(matrix_at, weight, first * weight.columns, p.hidden * weight.columns);
                upload_part(bias_at, bias, first, p.hidden);
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
    void upload_part(void* at, const HostMatrix& matrix, std::int64_t first, std::int64_t count) {
        const std::size_t size = size_of(matrix.type);
        state_.device_.upload(at, matrix.data.data() + static_cast<std::size_t>(first) * size,
                              static_cast<std::size_t>(count) * size);
    }

    State& state_;
    std::int64_t steps_;
    DropoutDescriptor dropout_;
    RnnDescriptor rnn_;
    DataDescriptor of_x_, of_y_;
    TensorDescriptor of_h_;
    std::size_t weight_bytes_ = 0, workspace_bytes_ = 0, reserve_bytes_ = 0;
    DeviceBuffer weights_, workspace_, reserve_;
};

/// [steps * batch, directions * hidden], on poisoned memory.
std::vector<double> RecurrentPeer::State::output(Call& call) {
    const std::int64_t count = call.steps() * problem_.batch * directions * problem_.hidden;
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(type_);
    device_.fill(y_.data(), 0xff, bytes);  // NaN in every type
    call.launch();
    std::vector<std::byte> stored(bytes);
    device_.download(stored.data(), y_.data(), bytes);
    std::vector<double> values(static_cast<std::size_t>(count));
    convert(type_, stored.data(), DataType::fp64, values.data(), count);
    return values;
}

std::vector<double> RecurrentPeer::State::reference() const {
    const std::int64_t rows = problem_.steps * problem_.batch, width = gates_of(problem_.cell) * problem_.hidden;
    const RecurrentShape shape{problem_.steps, problem_.batch, problem_.hidden};
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(problem_.batch),
                                            static_cast<std::int32_t>(problem_.steps));
    std::vector<reference::Element> elements;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < problem_.hidden; ++c) elements.push_back({r, c});
    std::vector<double> out(static_cast<std::size_t>(rows * directions * problem_.hidden));
    const std::vector<double> x = x_host_.wide();
    for (std::size_t d = 0; d < directions; ++d) {
        const std::vector<double> weight_ih = layer_[d].weight_ih.wide();
        std::vector<double> gates_x(static_cast<std::size_t>(rows * width), 0);
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t g = 0; g < width; ++g)
                for (std::int64_t i = 0; i < problem_.input; ++i)
                    gates_x[static_cast<std::size_t>(r * width + g)] +=
                        x[static_cast<std::size_t>(r * problem_.input + i)] *
                        weight_ih[static_cast<std::size_t>(g * problem_.input + i)];
        const auto view = [](const HostMatrix& m) {
            return reference::View{m.data.data(), m.type, m.rows, m.columns, m.columns};
        };
        const auto expected =
            reference::recurrent(problem_.cell, shape, d == 1, {gates_x.data(), DataType::fp64, rows, width, width},
                                 view(layer_[d].weight_hh), view(layer_[d].bias_ih), view(layer_[d].bias_hh),
                                 {lengths.data(), DataType::int32, problem_.batch, 1, 1}, elements);
        for (std::size_t e = 0; e < elements.size(); ++e)
            out[static_cast<std::size_t>(elements[e].row * directions * problem_.hidden + elements[e].column) +
                d * static_cast<std::size_t>(problem_.hidden)] = expected[e].value;
    }
    return out;
}

double RecurrentPeer::State::time_us(const std::function<void()>& launch, double seconds) {
    constexpr double sample_us = 2000;  ///< long beside what events and the first launch on an idle device add
    constexpr std::size_t fewest = 5;
    const std::unique_ptr<DeviceEvent> before = device_.make_event(), after = device_.make_event();
    const auto run_us = [&](int launches) {
        before->record();
        for (int i = 0; i < launches; ++i) launch();
        after->record();
        device_.synchronize();
        return 1e3 * after->ms_since(*before) / launches;
    };
    run_us(1);
    const double once_us = run_us(1);
    const int launches = std::max(1, static_cast<int>(std::ceil(sample_us / once_us)));
    for (double warm_us = 0; warm_us < seconds * 1e6 / 2;) warm_us += run_us(launches) * launches;
    std::vector<double> samples;
    for (double sampled_us = 0; samples.size() < fewest || sampled_us < seconds * 1e6;) {
        samples.push_back(run_us(launches));
        sampled_us += samples.back() * launches;
    }
    return median(samples);
}

RecurrentPeer::RecurrentPeer(Device& device, const Handle& handle, const RecurrentProblem& problem)
    : state_(std::make_unique<State>(device, handle, problem)) {}
RecurrentPeer::~RecurrentPeer() = default;

RecurrentTimes RecurrentPeer::time(std::string_view algorithm, std::string_view layout, double seconds) {
    State& s = *state_;
    const std::int64_t steps = s.problem_.steps;
    RecurrentTimes times;
    double longer_us = 0;
    {
        State::Call call(s, algorithm, layout, steps);
        const std::vector<double> h = s.output(call);
        if (s.standard_.empty()) {
            State::Call standard(s, "standard", "packed", steps);
            s.standard_ = s.output(standard);
        }
        times.error = relative_error(h, s.standard_);
        if (times.error > recurrent_tolerance(s.problem_.precision))
            throw DeviceError(fmt::format("differs from the standard algorithm by {:.2g} of h", times.error));
        times.workspace_bytes = call.workspace_bytes();
        times.step_us = s.time_us([&] { call.launch(); }, seconds) / static_cast<double>(steps);
        try {
            const std::unique_ptr<DeviceGraph> graph = s.device_.capture([&] { call.launch(); });
            times.graph_step_us = s.time_us([&] { graph->launch(); }, seconds) / static_cast<double>(steps);
        } catch (const DeviceError& error) {
            times.no_graph = error.what();
            cudaGetLastError();  // what the capture left is no error of the next call
        }
    }
    State::Call call(s, algorithm, layout, 2 * steps);
    const bool has_graph = times.no_graph.empty();
    std::unique_ptr<DeviceGraph> graph;
    if (has_graph) graph = s.device_.capture([&] { call.launch(); });
    longer_us = s.time_us([&] { has_graph ? graph->launch() : call.launch(); }, seconds);
    times.marginal_step_us = longer_us / static_cast<double>(steps) - (has_graph ? times.graph_step_us : times.step_us);
    return times;
}

double RecurrentPeer::error_against_reference(std::string_view algorithm, std::string_view layout) {
    State::Call call(*state_, algorithm, layout, state_->problem_.steps);
    return relative_error(state_->output(call), state_->reference());
}

double recurrent_tolerance(Precision precision) {
    switch (precision) {
        case Precision::fp16:
        case Precision::tf32: return 5e-3;
        case Precision::bf16: return 4e-2;
        case Precision::fp32: return 2e-5;
        default: return 1e-12;
    }
}

}  // namespace kbench::cudnn
