#include "bench/plan/providers/cuda/cudnn_convolution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "bench/plan/providers/cuda/cudnn_bench.h"
#include "bench/plan/providers/cuda/cudnn_graph.h"

namespace kbench::cudnn {
namespace {

using Note = fe::NumericalNote_t;

/// Winograd's and FFT's sums differ by more than the order of their terms.
const std::vector<Note> transforms = {Note::WINOGRAD, Note::WINOGRAD_TILE_4x4, Note::WINOGRAD_TILE_6x6,
                                      Note::WINOGRAD_TILE_13x13, Note::FFT};

std::vector<Note> unwanted(Precision precision, bool one_order) {
    std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION};
    if (precision == Precision::fp32) notes.insert(notes.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS});
    if (one_order) notes.push_back(Note::NONDETERMINISTIC);
    return notes;
}

std::string operation_name(Direction direction) {
    return direction == Direction::fwd ? "conv2d" : fmt::format("conv2d {}", name(direction));
}
bool has_bias(const ConvolutionProblem& problem) { return problem.op.bias && problem.direction != Direction::dgrad; }

/// A call of its own after the convolution: y with its bias, or the bias's gradient from dy.
class BiasCall {
  public:
    explicit BiasCall(const ConvolutionProblem& problem)
        : forward_(problem.direction == Direction::fwd),
          bias_(problem.step(), problem.precision, forward_ ? "bias" : "db"),
          y_(problem.step(), problem.precision, forward_ ? "out" : "dy"),
          of_bias_(make_tensor(problem.precision, 1, problem.op.out_channels, 1, 1)),
          of_y_(make_tensor(problem.precision, problem.op.batch, problem.op.out_channels, problem.op.out_height(),
                            problem.op.out_width())),
          one_(problem.precision, 1),
          zero_(problem.precision, 0) {}
    static const char* name(Direction direction) {
        return direction == Direction::fwd ? "cudnnAddTensor" : "cudnnConvolutionBackwardBias";
    }
    void run(cudnnHandle_t handle, const Call& call) const {
        if (forward_)
            check(cudnnAddTensor(handle, one_.get(), of_bias_.get(), bias_.of(call), one_.get(), of_y_.get(),
                                 y_.of(call)),
                  name(Direction::fwd));
        else
            check(cudnnConvolutionBackwardBias(handle, one_.get(), of_y_.get(), y_.of(call), zero_.get(),
                                               of_bias_.get(), bias_.of(call)),
                  name(Direction::wgrad));
    }

  private:
    bool forward_;
    Slot bias_, y_;  ///< or their gradients
    Tensor of_bias_, of_y_;
    Factor one_, zero_;
};

/// A convolution as a graph, and what cuDNN's heuristics propose for it. Its bias is a part of the graph or a call.
struct Proposal {
    ConvolutionProblem problem;
    GraphBuilder builder;
    bool bias_apart = false;

    std::string name(std::int64_t plan) const {
        std::string name;
        accept(builder.graph->get_plan_name_at_index(plan, name), "conv2d");
        return bias_apart ? fmt::format("{}, {}", name, BiasCall::name(problem.direction)) : name;
    }
    std::int64_t plans() const { return builder.graph->get_execution_plan_count(); }
};

template <class Attributes>
Attributes attributes(const Conv2d& op) {
    return Attributes()
        .set_name("conv2d")
        .set_padding({op.pad_h, op.pad_w})
        .set_stride({op.stride_h, op.stride_w})
        .set_dilation({1, 1});
}

/// Takes NCHW and KCRS as kbench stores them, and operands as Conv2d names them.
void add_operation(GraphBuilder& builder, const ConvolutionProblem& problem, bool bias_in_graph) {
    using Numbers = GraphBuilder::Numbers;
    const Conv2d& op = problem.op;
    const auto packed = [](const Numbers& d) { return Numbers{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; };
    const Numbers of_x{op.batch, op.in_channels, op.height, op.width};
    const Numbers of_weight{op.out_channels, op.in_channels, op.kernel_h, op.kernel_w};
    const Numbers of_y{op.batch, op.out_channels, op.out_height(), op.out_width()};
    const Numbers of_bias{1, op.out_channels, 1, 1};
    const auto input = [&](const char* name, const Numbers& dimensions) {
        return builder.input(name, {name}, dimensions, packed(dimensions));
    };
    const auto output = [&](fe::graph::Tensor_attributes& tensor, const char* name, const Numbers& dimensions) {
        builder.output(tensor, {name}, dimensions, packed(dimensions));
    };
    Graph& graph = *builder.graph;
    switch (problem.direction) {
        case Direction::dgrad: {
            const auto dy = input("dy", of_y), weight = input("weight", of_weight);
            output(*graph.conv_dgrad(dy, weight, attributes<fe::graph::Conv_dgrad_attributes>(op)), "dx", of_x);
            return;
        }
        case Direction::wgrad: {
            const auto x = input("x", of_x), dy = input("dy", of_y);
            output(*graph.conv_wgrad(dy, x, attributes<fe::graph::Conv_wgrad_attributes>(op)), "dw", of_weight);
            return;
        }
        default: {
            const auto x = input("x", of_x), weight = input("weight", of_weight);
            auto y = graph.conv_fprop(x, weight, attributes<fe::graph::Conv_fprop_attributes>(op));
            if (bias_in_graph) {
                const auto bias = input("bias", of_bias);
                y = graph.pointwise(
                    y, bias, fe::graph::Pointwise_attributes().set_name("bias").set_mode(fe::PointwiseMode_t::ADD));
            }
            output(*y, "out", of_y);
        }
    }
}

Proposal propose(const ConvolutionProblem& problem, const Handle& handle, bool bias_in_graph, bool one_order) {
    Proposal made{problem, GraphBuilder(problem.step(), problem.precision), has_bias(problem) && !bias_in_graph};
    add_operation(made.builder, problem, bias_in_graph);
    Graph& graph = *made.builder.graph;
    accept(graph.validate(), "conv2d");
    accept(graph.build_operation_graph(handle.get()), "conv2d");
    accept(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::B, fe::HeurMode_t::FALLBACK}), "conv2d");
    graph.deselect_workspace_greater_than(convolution_workspace_bytes)
        .deselect_numeric_notes(unwanted(problem.precision, one_order));
    return made;
}

/// Proposes the bias in the graph, then as a call of its own. Only the latter where cuDNN has no graph with it, as with
/// the bias's and the weight's gradient in one.
std::vector<Proposal> proposals(const ConvolutionProblem& problem, const Handle& handle, bool one_order) {
    std::vector<Proposal> found;
    if (has_bias(problem) && problem.direction == Direction::fwd) {
        try {
            found.push_back(propose(problem, handle, true, one_order));
        } catch (const Unsupported&) {
        }
    }
    found.push_back(propose(problem, handle, false, one_order));
    return found;
}

/// One plan of a proposal, built.
class ConvolutionComputation final : public Computation {
  public:
    /// Throws Unsupported where cuDNN cannot build it.
    ConvolutionComputation(Handle handle, const Proposal& proposal, std::int64_t plan)
        : handle_(std::move(handle)),
          builder_(proposal.builder),
          plan_(plan),
          implementation_(
              fmt::format("cudnn {}, {}", operation_name(proposal.problem.direction), proposal.name(plan))) {
        accept(builder_.graph->build_plan_at_index(plan), "conv2d");
        accept(builder_.graph->get_workspace_size_plan_at_index(plan, workspace_bytes_), "conv2d");
        if (!proposal.bias_apart) return;
        bias_.emplace(proposal.problem);
        roundings_ = proposal.problem.direction == Direction::fwd ? 2 : 1;
    }
    std::string implementation() const override { return implementation_; }
    std::size_t workspace_bytes() const override { return static_cast<std::size_t>(workspace_bytes_); }
    /// A bias that comes after meets outputs that were rounded.
    int roundings() const override { return roundings_; }
    void run(const Call& call) const override {
        check(cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(call.stream)), "cudnnSetStream");
        std::unordered_map<std::int64_t, void*> memory = builder_.memory(call);
        if (fe::error_t error = builder_.graph->execute_plan_at_index(handle_.get(), memory, call.workspace, plan_);
            error.is_bad())
            throw DeviceError(fmt::format("{}: {}", implementation_, message_of(std::move(error))));
        if (bias_) bias_->run(handle_.get(), call);
    }

  private:
    Handle handle_;
    GraphBuilder builder_;
    std::int64_t plan_, workspace_bytes_ = 0;
    std::string implementation_;
    std::optional<BiasCall> bias_;
    int roundings_ = 1;
};

/// Calls `take` with each plan that can be built, until it returns true, and `refuse` with the others. Takes only the
/// first of several plans with one name.
void for_each_plan(const Handle& handle, const std::vector<Proposal>& proposals,
                   const std::function<bool(std::unique_ptr<Computation>, std::string name)>& take,
                   const std::function<void(std::string name, std::string why)>& refuse) {
    std::set<std::string> names;
    for (const Proposal& proposal : proposals)
        for (std::int64_t plan = 0; plan < proposal.plans(); ++plan) {
            std::string name = proposal.name(plan);
            if (!names.insert(name).second) continue;
            std::unique_ptr<Computation> computation;
            try {
                computation = std::make_unique<ConvolutionComputation>(handle, proposal, plan);
            } catch (const Unsupported& why) {
                refuse(std::move(name), why.what());
                continue;
            }
            if (take(std::move(computation), std::move(name))) return;
        }
}

/// The first exact plan that runs makes what others must agree with. Throws Unsupported where none does.
void expect_exact(Bench& bench, const ConvolutionProblem& problem, const Handle& handle) {
    ConvolutionProblem exact = problem;
    if (exact.precision == Precision::tf32) exact.precision = Precision::fp32;
    Proposal proposal = propose(exact, handle, false, true);
    proposal.builder.graph->deselect_numeric_notes(transforms);
    bool found = false;
    std::string reason;
    const auto take = [&](std::unique_ptr<Computation> computation, const std::string&) {
        try {
            bench.expect(*computation);
        } catch (const DeviceError& error) {
            reason = fmt::format(": {}", error.what());
            return false;
        }
        return found = true;
    };
    for_each_plan(handle, {proposal}, take, [](const std::string&, const std::string&) {});
    if (!found)
        throw Unsupported(fmt::format("cuDNN has no exact {} in {}{}", operation_name(problem.direction),
                                      name(problem.precision), reason));
}

/// A plan that is still in the race.
struct Contender {
    ConvolutionPlan plan;
    std::unique_ptr<Computation> computation;
    int launches = 1;  ///< in the graph
    std::unique_ptr<DeviceGraph> graph = nullptr;
    std::vector<double> times_us = {};
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::string ConvolutionProblem::text() const {
    Conv2d shown = op;
    if (direction == Direction::dgrad) shown.bias = shown.accumulates = false;
    return fmt::format("{} {}", operation_name(direction), shown.text());
}

std::string convolution_refusal(const ConvolutionProblem& problem) {
    const auto& [op, direction, precision] = problem;
    // It hands over alpha and beta as floats, where such a graph reads doubles: results changed from run to run.
    if (precision == Precision::fp64) return "cudnn-frontend's graphs of convolutions are not for fp64";
    // A generated kernel of 9.14 (convFwd_knob_21) wrote 16 bytes across the ends of such rows, and the device was
    // lost.
    constexpr std::int64_t pieces = 4;
    if (precision == Precision::tf32 && direction == Direction::fwd && op.out_width() % pieces != 0)
        return fmt::format("rows of {} numbers: in tf32 its convolutions are trusted with multiples of {}",
                           op.out_width(), pieces);
    if (direction != Direction::wgrad) return "";
    if (op.accumulates) return "its conv2d wgrad cannot add to what is there";
    if (op.bias && precision == Precision::bf16) return "its gradient of a bias takes no bf16";
    return "";
}

std::vector<ConvolutionPlan> time_convolution(const ConvolutionProblem& problem, const Handle& handle, bool one_order) {
    constexpr double run_us = 1000;  ///< long compared with launching a graph
    constexpr double slow_factor = 3;
    constexpr int rounds = 7;
    if (const std::string reason = convolution_refusal(problem); !reason.empty()) throw Unsupported(reason);
    const double allowed = allowance(problem);
    Bench bench(problem);
    expect_exact(bench, problem, handle);
    std::vector<Contender> contenders;
    std::vector<ConvolutionPlan> refused;
    const auto take = [&](std::unique_ptr<Computation> computation, std::string name) {
        ConvolutionPlan plan{std::move(name), static_cast<std::int64_t>(computation->workspace_bytes()), 0, ""};
        try {
            bench.run(*computation);
            const double difference = bench.largest_difference();
            if (difference > allowed)
                plan.why_not = fmt::format("differs by {:.2g} where rounding explains {:.2g}", difference, allowed);
        } catch (const DeviceError& error) {
            plan.why_not = error.what();
        }
        if (plan.why_not.empty())
            contenders.push_back({std::move(plan), std::move(computation)});
        else
            refused.push_back(std::move(plan));
        return false;
    };
    for_each_plan(handle, proposals(problem, handle, one_order), take, [&](std::string name, std::string why) {
        refused.push_back({std::move(name), 0, 0, std::move(why)});
    });
    double best_us = std::numeric_limits<double>::infinity();
    for (Contender& c : contenders) {
        c.plan.median_us = bench.time_once_us(*c.computation);
        best_us = std::min(best_us, c.plan.median_us);
    }
    for (Contender& c : contenders) {
        if (c.plan.median_us > slow_factor * best_us) continue;  // what one launch took has to do
        c.launches = std::max(1, static_cast<int>(std::ceil(run_us / c.plan.median_us)));
        c.graph = bench.record(*c.computation, c.launches);
        bench.time_us([&] { c.graph->launch(); });
    }
    // Interleaved, so that a drift of the clocks meets all alike.
    for (int round = 0; round < rounds; ++round)
        for (Contender& c : contenders)
            if (c.graph) c.times_us.push_back(bench.time_us([&] { c.graph->launch(); }));
    for (Contender& c : contenders)
        if (c.graph) c.plan.median_us = median(c.times_us) / c.launches;
    std::ranges::sort(contenders, {}, [](const Contender& c) { return c.plan.median_us; });
    std::vector<ConvolutionPlan> plans;
    for (Contender& c : contenders) plans.push_back(std::move(c.plan));
    plans.insert(plans.end(), std::make_move_iterator(refused.begin()), std::make_move_iterator(refused.end()));
    return plans;
}

std::unique_ptr<Computation> make_convolution(const ConvolutionProblem& problem, const Handle& handle,
                                              const std::string& plan, bool one_order) {
    std::unique_ptr<Computation> made;
    std::string reason = "its heuristics propose none";
    for (const Proposal& proposal : proposals(problem, handle, one_order))
        for (std::int64_t index = 0; index < proposal.plans() && !made; ++index) {
            if (!plan.empty() && proposal.name(index) != plan) continue;
            try {
                made = std::make_unique<ConvolutionComputation>(handle, proposal, index);
            } catch (const Unsupported& why) {
                reason = why.what();
            }
        }
    if (!made) throw Unsupported(fmt::format("cuDNN makes no plan '{}' of {}: {}", plan, problem.text(), reason));
    return made;
}

}  // namespace kbench::cudnn
