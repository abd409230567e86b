// Provider `cudnn`: attention, convolution and their gradients as graphs of NVIDIA's cuDNN, to compare with, only on
// request.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/cudnn_convolution.h"
#include "bench/plan/providers/cuda/cudnn_graph.h"
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "kernels/check.h"
#include "kernels/gemm/choice_file.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using namespace cudnn;

constexpr std::int64_t workspace_limit_bytes = std::int64_t{64} << 20;

/// The first plan of cuDNN's heuristics that supports the graph within the workspace.
class GraphComputation final : public Computation {
  public:
    GraphComputation(Handle handle, GraphBuilder builder, const char* what)
        : handle_(std::move(handle)), built_(std::move(builder)) {
        Graph& graph = *built_.graph;
        accept(graph.validate(), what);
        accept(graph.build_operation_graph(handle_.get()), what);
        accept(graph.create_execution_plans({fe::HeurMode_t::A}), what);
        graph.deselect_workspace_greater_than(workspace_limit_bytes);
        accept(graph.check_support(), what);
        accept(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE), what);
        accept(graph.get_workspace_size(workspace_bytes_), what);
        std::string plan;
        accept(graph.get_plan_name(plan), what);
        implementation_ = fmt::format("cudnn {}, {}", what, plan);
    }
    std::string implementation() const override { return implementation_; }
    std::size_t workspace_bytes() const override { return static_cast<std::size_t>(workspace_bytes_); }
    void run(const Call& call) const override {
        std::unordered_map<std::int64_t, void*> memory = built_.memory(call);
        check(cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(call.stream)), "cudnnSetStream");
        if (fe::error_t error = built_.graph->execute(handle_.get(), memory, call.workspace); error.is_bad())
            throw DeviceError(fmt::format("{}: {}", implementation_, message_of(std::move(error))));
    }

  private:
    Handle handle_;
    GraphBuilder built_;
    std::int64_t workspace_bytes_ = 0;
    std::string implementation_;
};

/// Layout of attention's arrays. lse is what cuDNN calls "stats", in fp32.
struct AttentionLayout {
    GraphBuilder::Numbers dimensions, in_qkv, in_out, lse_dimensions, in_lse;
    std::int64_t width;

    explicit AttentionLayout(const AttentionShape& s)
        : dimensions{s.batch, s.heads, s.seq, s.head_size},
          in_qkv{s.seq * 3 * s.width(), s.head_size, 3 * s.width(), 1},
          in_out{s.seq * s.width(), s.head_size, s.width(), 1},
          lse_dimensions{s.batch, s.heads, s.seq, 1},
          in_lse{s.heads * s.seq, s.seq, 1, 1},
          width(s.width()) {}
};

std::unique_ptr<Computation> attention(const Attention& op, const Step& step, Precision precision, Handle handle) {
    const auto [dimensions, in_qkv, in_out, lse_dimensions, in_lse, width] = AttentionLayout(op.shape);
    GraphBuilder builder(step, precision);
    const auto q = builder.input("q", {"qkv", 0}, dimensions, in_qkv);
    const auto k = builder.input("k", {"qkv", width}, dimensions, in_qkv);
    const auto v = builder.input("v", {"qkv", 2 * width}, dimensions, in_qkv);
    const auto options = fe::graph::SDPA_attributes()
                             .set_name("attention")
                             .set_generate_stats(op.saves_lse)
                             .set_causal_mask(true)
                             .set_attn_scale(static_cast<float>(op.scale));
    const auto outputs = builder.graph->sdpa(q, k, v, options);
    if (op.saves_lse) {
        outputs[1]->set_data_type(fe::DataType_t::FLOAT);
        builder.output(*outputs[1], {"lse"}, lse_dimensions, in_lse);
    }
    builder.output(*outputs[0], {"out"}, dimensions, in_out);
    return std::make_unique<GraphComputation>(std::move(handle), std::move(builder), "attention");
}

/// Not deterministic unless asked for: that is another algorithm of cuDNN, and people use this one
/// by default.
template <bool deterministic>
std::unique_ptr<Computation> attention_gradient(const Attention& op, const Step& step, Precision precision,
                                                Handle handle) {
    const auto [dimensions, in_qkv, in_out, lse_dimensions, in_lse, width] = AttentionLayout(op.shape);
    GraphBuilder builder(step, precision);
    const auto q = builder.input("q", {"qkv", 0}, dimensions, in_qkv);
    const auto k = builder.input("k", {"qkv", width}, dimensions, in_qkv);
    const auto v = builder.input("v", {"qkv", 2 * width}, dimensions, in_qkv);
    const auto out = builder.input("out", {"out"}, dimensions, in_out);
    const auto dout = builder.input("dout", {"dout"}, dimensions, in_out);
    const auto lse = builder.input("lse", {"lse"}, lse_dimensions, in_lse);
    lse->set_data_type(fe::DataType_t::FLOAT);
    const auto options = fe::graph::SDPA_backward_attributes()
                             .set_name("attention backward")
                             .set_deterministic_algorithm(deterministic)
                             .set_causal_mask(true)
                             .set_attn_scale(static_cast<float>(op.scale));
    const auto outputs = builder.graph->sdpa_backward(q, k, v, out, dout, lse, options);
    for (std::size_t part = 0; part < outputs.size(); ++part)
        builder.output(*outputs[part], {"dqkv", static_cast<std::int64_t>(part) * width}, dimensions, in_qkv);
    return std::make_unique<GraphComputation>(std::move(handle), std::move(builder), "attention backward");
}

std::string no_such_attention(const Attention& op, const Step&, Precision) {
    const std::int64_t head_size = op.shape.head_size;
    // "d must be a multiple of 8, at most 256 on Hopper": cuDNN's documentation of scaled dot product attention.
    if (head_size % 8 != 0 || head_size > 256)
        return fmt::format("head size {}: its attention takes multiples of 8 up to 256", head_size);
    return "";
}

std::string no_such_convolution(const Conv2d& op, const Step& step, Precision precision) {
    if (std::string reason = convolution_refusal({op, step.direction, precision}); !reason.empty()) return reason;
    const std::int64_t most = std::max(op.batch * op.in_channels * op.height * op.width,
                                       op.batch * op.out_channels * op.out_height() * op.out_width());
    if (most > std::numeric_limits<int>::max())
        return fmt::format("{} elements: its convolutions take less than 2^31", most);
    return "";
}

/// The fastest plan of each convolution: remembered, else found when it is first made. With --deterministic, the first
/// that cuDNN proposes.
class Convolutions {
  public:
    explicit Convolutions(const ProviderContext& context) {
        if (context.deterministic) return;
        using nlohmann::json;
        const auto write = [](const ConvolutionPlan& plan) {
            return json{{"plan", plan.name}, {"median_us", plan.median_us}};
        };
        const auto read = [](const json& entry) {
            ConvolutionPlan plan;
            plan.name = entry.at("plan").get<std::string>();
            plan.median_us = entry.at("median_us").get<double>();
            return plan;
        };
        std::filesystem::path file = context.algorithm_cache;  // empty where nothing is to be remembered
        if (!file.empty()) file.replace_filename("cudnn.json");
        chosen_.emplace(file, context.retune,
                        cuda::ChoiceFile<ConvolutionPlan>::Format{"cuDNN plan cache", 1, write, read});
    }
    std::unique_ptr<Computation> make(const ConvolutionProblem& problem, const Handle& handle) {
        if (!chosen_) return make_convolution(problem, handle, "", true);
        const std::string key =
            fmt::format("{}|{}|{} {}", device_name(), cudnn_version(), name(problem.precision), problem.text());
        if (const ConvolutionPlan* plan = chosen_->find(key)) {
            try {
                return make_convolution(problem, handle, plan->name, false);
            } catch (const Unsupported&) {
                // Not proposed any more: measured anew.
            }
        }
        const std::vector<ConvolutionPlan> plans = time_convolution(problem, handle);
        if (plans.empty() || !plans.front().why_not.empty())
            throw Unsupported(fmt::format("cuDNN has no right plan for {} in {}{}", problem.text(),
                                          name(problem.precision), plans.empty() ? "" : ": " + plans.front().why_not));
        chosen_->store(key, plans.front());
        return make_convolution(problem, handle, plans.front().name, false);
    }
    std::vector<std::string> warnings() const { return chosen_ ? chosen_->warnings() : std::vector<std::string>(); }

  private:
    static std::string device_name() {
        int device = 0;
        cudaDeviceProp properties{};
        KBENCH_CUDA(cudaGetDevice(&device));
        KBENCH_CUDA(cudaGetDeviceProperties(&properties, device));
        return properties.name;
    }
    std::optional<cuda::ChoiceFile<ConvolutionPlan>> chosen_;  ///< none where no time may choose
};

/// A row for `make(op, step, precision, handle)`; the handle is made with the first computation.
template <OpStruct T>
Computes<T> library_row(std::vector<Precision> precisions, std::string (*why_not)(const T&, const Step&, Precision),
                        std::function<std::unique_ptr<Computation>(const T&, const Step&, Precision, Handle)> make,
                        std::shared_ptr<Handle> handle, Direction direction = Direction::fwd) {
    return {.directions = {direction},
            .precisions = std::move(precisions),
            .why_not =
                [why_not](const T& op, const Step& step, Precision precision) {
                    std::string reason = why_not(op, step, precision);
                    return reason.empty() ? cudnn_unavailable() : reason;
                },
            .make =
                [make, handle](const T& op, const Step& step, Precision precision) {
                    if (*handle == nullptr) *handle = make_handle();
                    return make(op, step, precision, *handle);
                }};
}

}  // namespace

std::unique_ptr<Provider> make_cudnn(const ProviderContext& context) {
    const auto handle = std::make_shared<Handle>();
    const auto convolutions = std::make_shared<Convolutions>(context);
    using enum Precision;
    const auto convolution = [&](Direction direction) {
        return library_row<Conv2d>(
            {fp16, bf16, tf32, fp32}, no_such_convolution,
            [=](const Conv2d& op, const Step&, Precision precision, const Handle& made) {
                return convolutions->make({op, direction, precision}, made);
            },
            handle, direction);
    };
    return std::make_unique<Provider>(Provider{
        .name = "cudnn",
        .ops = {library_row<Attention>({fp16, bf16}, no_such_attention, attention, handle),
                library_row<Attention>({fp16, bf16}, no_such_attention,
                                       context.deterministic ? attention_gradient<true> : attention_gradient<false>,
                                       handle, Direction::bwd),
                convolution(Direction::fwd), convolution(Direction::dgrad), convolution(Direction::wgrad)},
        .on_request_only = true,
        .workspace_limit = convolution_workspace_bytes,
        .warnings = [convolutions] { return convolutions->warnings(); }});
}

}  // namespace kbench
