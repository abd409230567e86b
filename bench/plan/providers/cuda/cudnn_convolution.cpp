#include "bench/plan/providers/cuda/cudnn_convolution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "bench/device/device.h"
#include "bench/plan/providers/cuda/cudnn_graph.h"
#include "kernels/gemm/operands.h"

namespace kbench::cudnn {
namespace {

using Note = fe::NumericalNote_t;

/// Winograd's and FFT's sums differ by more than the order of their terms.
const std::vector<Note> transforms = {Note::WINOGRAD, Note::WINOGRAD_TILE_4x4, Note::WINOGRAD_TILE_6x6,
                                      Note::WINOGRAD_TILE_13x13, Note::FFT};
constexpr const char* apart = ", cudnnAddTensor";  ///< behind the name of a plan whose bias is a call of its own

std::vector<Note> unwanted(Precision precision, bool one_order) {
    std::vector<Note> notes = {Note::REDUCED_PRECISION_REDUCTION};
    if (precision == Precision::fp32) notes.insert(notes.end(), {Note::TENSOR_CORE, Note::DOWN_CONVERT_INPUTS});
    if (one_order) notes.push_back(Note::NONDETERMINISTIC);
    return notes;
}

/// A convolution as a graph, and what cuDNN's heuristics propose for it. Its bias is a part of the graph or comes
/// after.
struct Proposal {
    GraphBuilder builder;
    bool bias_after = false;

    std::string name(std::int64_t plan) const {
        std::string name;
        accept(builder.graph->get_plan_name_at_index(plan, name), "conv2d");
        return name + (bias_after ? apart : "");
    }
    std::int64_t plans() const { return builder.graph->get_execution_plan_count(); }
};

Proposal propose(const Conv2d& op, Precision precision, const Handle& handle, bool bias_in_graph, bool one_order) {
    using Numbers = GraphBuilder::Numbers;
    const auto packed = [](const Numbers& d) { return Numbers{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; };
    const Numbers of_x{op.batch, op.in_channels, op.height, op.width};
    const Numbers of_weight{op.out_channels, op.in_channels, op.kernel_h, op.kernel_w};
    const Numbers of_out{op.batch, op.out_channels, op.out_height(), op.out_width()};
    const Numbers of_bias{1, op.out_channels, 1, 1};

    Proposal made{GraphBuilder(precision), op.bias && !bias_in_graph};
    GraphBuilder& builder = made.builder;
    Graph& graph = *builder.graph;
    const auto x = builder.input("x", {0}, of_x, packed(of_x));
    const auto weight = builder.input("weight", {1}, of_weight, packed(of_weight));
    const auto options = fe::graph::Conv_fprop_attributes()
                             .set_name("conv2d")
                             .set_padding({op.pad_h, op.pad_w})
                             .set_stride({op.stride_h, op.stride_w})
                             .set_dilation({1, 1});
    auto out = graph.conv_fprop(x, weight, options);
    if (op.bias && bias_in_graph) {
        const auto bias = builder.input("bias", {2}, of_bias, packed(of_bias));
        out = graph.pointwise(out, bias,
                              fe::graph::Pointwise_attributes().set_name("bias").set_mode(fe::PointwiseMode_t::ADD));
    }
    builder.output(*out, {op.bias ? 3u : 2u}, of_out, packed(of_out));
    accept(graph.validate(), "conv2d");
    accept(graph.build_operation_graph(handle.get()), "conv2d");
    accept(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::B, fe::HeurMode_t::FALLBACK}), "conv2d");
    graph.deselect_workspace_greater_than(convolution_workspace_bytes)
        .deselect_numeric_notes(unwanted(precision, one_order));
    return made;
}

/// With the bias in the graph, then with it behind. Where cuDNN has no graph with it there is the other alone.
std::vector<Proposal> proposals(const Conv2d& op, Precision precision, const Handle& handle, bool one_order) {
    std::vector<Proposal> found;
    if (op.bias) {
        try {
            found.push_back(propose(op, precision, handle, true, one_order));
        } catch (const Unsupported&) {
        }
    }
    found.push_back(propose(op, precision, handle, false, one_order));
    return found;
}

/// One plan of a proposal, built.
class ConvolutionComputation final : public Computation {
  public:
    /// Throws Unsupported where cuDNN cannot build it.
    ConvolutionComputation(const Conv2d& op, Precision precision, Handle handle, const Proposal& proposal,
                           std::int64_t plan)
        : handle_(std::move(handle)), builder_(proposal.builder), plan_(plan), name_(proposal.name(plan)) {
        accept(builder_.graph->build_plan_at_index(plan), "conv2d");
        accept(builder_.graph->get_workspace_size_plan_at_index(plan, workspace_bytes_), "conv2d");
        if (!proposal.bias_after) return;
        bias_after_.emplace(Bias{make_tensor(precision, 1, op.out_channels, 1, 1),
                                 make_tensor(precision, op.batch, op.out_channels, op.out_height(), op.out_width()),
                                 Factor(precision, 1)});
    }
    std::string implementation() const override { return "cudnn conv2d, " + name_; }
    std::size_t workspace_bytes() const override { return static_cast<std::size_t>(workspace_bytes_); }
    /// A bias that comes after meets outputs that were rounded.
    int roundings() const override { return bias_after_ ? 2 : 1; }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        check(cudnnSetStream(handle_.get(), static_cast<cudaStream_t>(stream)), "cudnnSetStream");
        std::unordered_map<std::int64_t, void*> memory = builder_.memory(pointers);
        if (fe::error_t error = builder_.graph->execute_plan_at_index(handle_.get(), memory, workspace, plan_);
            error.is_bad())
            throw DeviceError(fmt::format("{}: {}", implementation(), message_of(std::move(error))));
        if (!bias_after_) return;
        const auto& [of_bias, of_out, one] = *bias_after_;
        check(
            cudnnAddTensor(handle_.get(), one.get(), of_bias.get(), pointers[2], one.get(), of_out.get(), pointers[3]),
            "cudnnAddTensor");
    }

  private:
    struct Bias {
        Tensor of_bias, of_out;
        Factor one;
    };
    Handle handle_;
    GraphBuilder builder_;
    std::int64_t plan_, workspace_bytes_ = 0;
    std::string name_;
    std::optional<Bias> bias_after_;
};

/// The largest difference that rounding explains between two right outputs on the bench's operands: sums of `taps`
/// terms of size 1 / sqrt(taps) and a bias near 1, rounded twice at the most. As rounding_allowance of GEMMs.
double allowance(const Conv2d& op, Precision precision) {
    const double taps = static_cast<double>(op.taps()), largest_output = 8, magnitude = std::sqrt(taps);
    const double multiply = precision == Precision::tf32 ? 2 * unit_roundoff(precision) : 0;
    return 4 * (2 * unit_roundoff(storage_type(precision)) * largest_output + multiply +
                (1 + std::sqrt(taps)) * accumulator_roundoff(precision) * magnitude);
}

/// Operands on a device, and what a right plan makes of them.
class Bench {
  public:
    Bench(const Conv2d& op, Precision precision)
        : op_(op), precision_(precision), device_(make_cuda_device()), difference_(*device_, sizeof(double)) {
        std::uint64_t seed = 0;
        for (const Operand& operand : operands(Step::of(op), precision)) {
            buffers_.emplace_back(*device_, static_cast<std::size_t>(operand.bytes()));
            pointers_.push_back(buffers_.back().data());
            const double deviation = operand.name == "weight" ? 1 / std::sqrt(static_cast<double>(op.taps())) : 1;
            cuda::fill_normal(operand.type, pointers_.back(), operand.rows * operand.columns, deviation, ++seed,
                              stream());
        }
        expected_ = DeviceBuffer(*device_, buffers_.back().bytes());
        device_->synchronize();
    }

    /// Also warms up: the first run loads kernels. Throws DeviceError where the plan cannot run.
    void run(const Computation& computation) {
        if (computation.workspace_bytes() > workspace_.bytes()) {
            workspace_ = DeviceBuffer();
            workspace_ = DeviceBuffer(*device_, computation.workspace_bytes());
        }
        device_->fill(pointers_.back(), 0xff, buffers_.back().bytes());  // NaN in every type
        enqueue(computation);
        device_->synchronize();
    }
    /// Its output is what others must agree with.
    void expect(const Computation& computation) {
        run(computation);
        std::swap(expected_, buffers_.back());
        pointers_.back() = buffers_.back().data();
    }
    /// Of the last run's output and the expected one; infinity where either is not finite.
    double largest_difference() {
        double largest = 0;
        cuda::largest_difference(storage_type(precision_), pointers_.back(), expected_.data(),
                                 op_.batch * op_.out_channels * op_.out_height(), op_.out_width(), op_.out_width(),
                                 reinterpret_cast<double*>(difference_.data()), stream());
        device_->download(&largest, difference_.data(), sizeof largest);
        return largest;
    }
    /// Called for what has run: its workspace is there.
    std::unique_ptr<DeviceGraph> record(const Computation& computation, int launches) {
        return device_->capture([&, launches] {
            for (int i = 0; i < launches; ++i) enqueue(computation);
        });
    }
    double time_us(const std::function<void()>& launch) {
        before_->record();
        launch();
        after_->record();
        device_->synchronize();
        return 1e3 * after_->ms_since(*before_);
    }
    double time_once_us(const Computation& computation) {
        return time_us([&] { enqueue(computation); });
    }

  private:
    cudaStream_t stream() { return static_cast<cudaStream_t>(device_->stream()); }
    void enqueue(const Computation& computation) { computation.run(pointers_, workspace_.data(), stream()); }

    const Conv2d op_;
    Precision precision_;
    std::unique_ptr<Device> device_;
    std::vector<DeviceBuffer> buffers_;
    std::vector<void*> pointers_;
    DeviceBuffer difference_, expected_, workspace_;
    std::unique_ptr<DeviceEvent> before_ = device_->make_event(), after_ = device_->make_event();
};

/// Calls `take` with each plan that can be built, until it returns true, and `refuse` with the others. Of plans of one
/// name the first alone.
void for_each_plan(const Conv2d& op, Precision precision, const Handle& handle, const std::vector<Proposal>& proposals,
                   const std::function<bool(std::unique_ptr<Computation>, std::string name)>& take,
                   const std::function<void(std::string name, std::string why)>& refuse) {
    std::set<std::string> names;
    for (const Proposal& proposal : proposals)
        for (std::int64_t plan = 0; plan < proposal.plans(); ++plan) {
            std::string name = proposal.name(plan);
            if (!names.insert(name).second) continue;
            std::unique_ptr<Computation> computation;
            try {
                computation = std::make_unique<ConvolutionComputation>(op, precision, handle, proposal, plan);
            } catch (const Unsupported& why) {
                refuse(std::move(name), why.what());
                continue;
            }
            if (take(std::move(computation), std::move(name))) return;
        }
}

/// The first exact plan that runs makes what others must agree with. Throws Unsupported where none does.
void expect_exact(Bench& bench, const Conv2d& op, Precision precision, const Handle& handle) {
    const Precision exact = precision == Precision::tf32 ? Precision::fp32 : precision;
    Proposal proposal = propose(op, exact, handle, false, true);
    proposal.builder.graph->deselect_numeric_notes(transforms);
    bool found = false;
    const auto take = [&](std::unique_ptr<Computation> computation, const std::string&) {
        try {
            bench.expect(*computation);
        } catch (const DeviceError&) {
            return false;
        }
        return found = true;
    };
    for_each_plan(op, exact, handle, {proposal}, take, [](const std::string&, const std::string&) {});
    if (!found) throw Unsupported(fmt::format("cuDNN has no exact convolution in {}", name(precision)));
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

std::vector<ConvolutionPlan> time_convolution(const Conv2d& op, Precision precision, const Handle& handle,
                                              bool one_order) {
    constexpr double run_us = 1000;  ///< long beside what launching a graph takes
    constexpr double slow_factor = 3;
    constexpr int rounds = 7;
    Bench bench(op, precision);
    expect_exact(bench, op, precision, handle);
    std::vector<Contender> contenders;
    std::vector<ConvolutionPlan> refused;
    const auto take = [&](std::unique_ptr<Computation> computation, std::string name) {
        ConvolutionPlan plan{std::move(name), static_cast<std::int64_t>(computation->workspace_bytes()), 0, ""};
        try {
            bench.run(*computation);
            const double difference = bench.largest_difference(), allowed = allowance(op, precision);
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
    for_each_plan(op, precision, handle, proposals(op, precision, handle, one_order), take,
                  [&](std::string name, std::string why) {
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

std::unique_ptr<Computation> make_convolution(const Conv2d& op, Precision precision, const Handle& handle,
                                              const std::string& plan, bool one_order) {
    std::unique_ptr<Computation> made;
    std::string reason = "its heuristics propose none";
    for (const Proposal& proposal : proposals(op, precision, handle, one_order))
        for (std::int64_t index = 0; index < proposal.plans() && !made; ++index) {
            if (!plan.empty() && proposal.name(index) != plan) continue;
            try {
                made = std::make_unique<ConvolutionComputation>(op, precision, handle, proposal, index);
            } catch (const Unsupported& why) {
                reason = why.what();
            }
        }
    if (!made) throw Unsupported(fmt::format("cuDNN makes no plan '{}' of conv2d {}: {}", plan, op.text(), reason));
    return made;
}

}  // namespace kbench::cudnn
