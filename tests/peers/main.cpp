// cudnn_peer: what each of cuDNN's algorithms takes for a convolution or a recurrent layer, one JSON object a line.
// Built with the tests where kbench has cuDNN; not installed. scripts/ and the results in docs/ are who calls it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/plan/providers/cuda/cudnn_convolution.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "bench/plan/providers/cuda/cudnn_library.h"
#include "kbench/error.h"
#include "models/problem.h"
#include "tests/peers/cudnn_recurrent.h"

namespace kbench {
namespace {

using nlohmann::json;

struct Options {
    std::vector<std::string> precisions = {"fp16", "tf32", "fp32"};
    std::vector<std::string> directions = {"fwd"};
    std::vector<std::string> shapes;  ///< convolutions alone
    std::vector<std::string> cells = {"lstm"};
    std::vector<std::int64_t> hidden = {256, 512, 1024, 2048}, batches = {1, 2, 4, 8, 16, 32, 64, 128};
    std::vector<std::string> algorithms{std::begin(cudnn::recurrent_algorithms), std::end(cudnn::recurrent_algorithms)};
    std::vector<std::string> layouts{std::begin(cudnn::recurrent_layouts), std::end(cudnn::recurrent_layouts)};
    std::int64_t steps = 100;
    double seconds = 0.02;
};

void print(const json& line) { std::cout << line.dump() << std::endl; }

json number(double value) { return std::isfinite(value) ? json(value) : json(); }

Precision precision_of(const std::string& text) {
    for (const Precision precision : all_precisions)
        if (name(precision) == text) return precision;
    throw UsageError(fmt::format("--precision '{}': must be fp16, bf16, tf32, fp32 or fp64", text));
}

template <OpStruct T>
std::vector<Direction> directions_of(const Options& options) {
    std::vector<Direction> found;
    for (const std::string& text : options.directions) {
        const auto has = std::ranges::find(T::directions, text, [](Direction direction) { return name(direction); });
        if (has == std::end(T::directions))
            throw UsageError(fmt::format("--direction '{}': must be fwd, {} or wgrad", text, name(T::directions[1])));
        found.push_back(*has);
    }
    return found;
}

/// One convolution's plans; whether some plan ran.
bool time_plans(const cudnn::ConvolutionProblem& problem, const cudnn::Handle& handle) {
    const json row = {{"op", "conv2d"},
                      {"direction", name(problem.direction)},
                      {"shape", problem.op.text()},
                      {"precision", name(problem.precision)}};
    bool some = false;
    try {
        for (const auto& plan : cudnn::time_convolution(problem, handle)) {
            json line = row;
            line["plan"] = plan.name;
            if (plan.why_not.empty()) {
                line.update(json{{"median_us", plan.median_us}, {"workspace_bytes", plan.workspace_bytes}});
                some = true;
            } else {
                line["why_not"] = plan.why_not;
            }
            print(line);
        }
    } catch (const Unsupported& why) {
        json line = row;
        line["why_not"] = why.what();
        print(line);
    }
    return some;
}

/// Whether of each some plan ran.
bool time_convolutions(const Options& options, const cudnn::Handle& handle) {
    bool all = true;
    for (const std::string& shape : options.shapes)
        for (const Direction direction : directions_of<Conv2d>(options))
            for (const std::string& precision : options.precisions) {
                const Conv2d op = parse_problem("conv2d", shape).as<Conv2d>();
                if (op.accumulates)
                    throw UsageError(fmt::format("--shape '{}': cuDNN's plans add to nothing; leave out the a", shape));
                all = time_plans({op, direction, precision_of(precision)}, handle) && all;
            }
    return all;
}

/// The standard algorithm in both layouts against the reference, at a size where that is quick; the others, and other
/// sizes, are held against the standard one. Whether it was right.
bool check_recurrent(Device& device, const cudnn::Handle& handle, cudnn::RecurrentProblem problem, Direction direction,
                     const std::vector<std::string>& layouts, const json& row) {
    problem.hidden = 64, problem.batch = 3, problem.steps = 13;
    bool right = true;
    for (const std::string& layout : layouts) {
        json line = row;
        line.update(json{{"check", "reference"}, {"algorithm", "standard"}, {"layout", layout}});
        try {
            const double error =
                cudnn::RecurrentPeer(device, handle, problem).error_against_reference(direction, "standard", layout);
            const bool passed = error <= cudnn::recurrent_tolerance(direction, problem.precision);
            line.update(json{{"error", number(error)}, {"passed", passed}});
            right = right && passed;
        } catch (const Unsupported& why) {
            line["why_not"] = why.what();
        }
        print(line);
    }
    return right;
}

/// A line of an algorithm; whether what it computed was right.
bool time_algorithm(cudnn::RecurrentPeer& peer, Direction direction, const std::string& algorithm,
                    const std::string& layout, double seconds, json line) {
    bool right = true;
    line.update(json{{"algorithm", algorithm}, {"layout", layout}});
    try {
        const auto times = peer.time(direction, algorithm, layout, seconds);
        line.update(json{{"step_us", number(times.step_us)},
                         {"graph_step_us", number(times.graph_step_us)},
                         {"marginal_step_us", number(times.marginal_step_us)},
                         {"error", number(times.error)},
                         {"workspace_bytes", times.workspace_bytes}});
        if (!times.no_graph.empty()) line["no_graph"] = times.no_graph;
    } catch (const Unsupported& why) {
        line["why_not"] = why.what();
    } catch (const DeviceError& error) {
        line["failed"] = error.what();
        right = false;
    }
    print(line);
    return right;
}

/// Whether all that the algorithms computed was right.
bool time_recurrent(const Options& options, const cudnn::Handle& handle) {
    const std::unique_ptr<Device> device = make_cuda_device();
    const std::vector<Direction> directions = directions_of<Lstm>(options);
    bool right = true;
    for (const std::string& cell_name : options.cells)
        for (const std::string& precision : options.precisions) {
            const auto found = std::ranges::find(cell_names, cell_name);
            if (found == std::end(cell_names))
                throw UsageError(fmt::format("--cell '{}': must be lstm, gru or rnn", cell_name));
            cudnn::RecurrentProblem problem{static_cast<Cell>(found - std::begin(cell_names)), precision_of(precision)};
            const auto row = [&](Direction direction) {
                return json{{"op", cell_name}, {"direction", name(direction)}, {"precision", precision}};
            };
            for (const Direction direction : directions)
                right = check_recurrent(*device, handle, problem, direction, options.layouts, row(direction)) && right;
            for (const std::int64_t hidden : options.hidden)
                for (const std::int64_t batch : options.batches) {
                    problem.hidden = hidden, problem.batch = batch, problem.steps = options.steps;
                    cudnn::RecurrentPeer peer(*device, handle, problem);
                    for (const Direction direction : directions) {
                        json line = row(direction);
                        line.update(json{
                            {"hidden", hidden}, {"batch", batch}, {"steps", options.steps}, {"input", problem.input}});
                        for (const std::string& algorithm : options.algorithms)
                            for (const std::string& layout : options.layouts)
                                right =
                                    time_algorithm(peer, direction, algorithm, layout, options.seconds, line) && right;
                    }
                }
        }
    return right;
}

int run(int count, char** arguments) {
    Options options;
    CLI::App app{"Times cuDNN's algorithms one by one; one JSON object a line."};
    app.require_subcommand(1);
    CLI::App* convolution = app.add_subcommand("conv2d", "every plan that cuDNN's heuristics propose, NCHW");
    convolution->add_option("--shape", options.shapes, "such as n8c32h81w500k32r21s11u2v1p10q5b")
        ->required()
        ->delimiter(',');
    CLI::App* recurrent = app.add_subcommand(
        "recurrent",
        "both directions, 8 inputs: cudnnRNNForward in inference, cudnnRNNBackwardData_v8 (bwd), cudnnRNNBackwardWeights_v8 (wgrad)");
    recurrent->add_option("--cell", options.cells, "lstm, gru, rnn")->delimiter(',');
    recurrent->add_option("--hidden", options.hidden)->delimiter(',')->check(CLI::PositiveNumber);
    recurrent->add_option("--batch", options.batches)->delimiter(',')->check(CLI::PositiveNumber);
    recurrent->add_option("--steps", options.steps)->check(CLI::PositiveNumber);
    recurrent->add_option("--algorithm", options.algorithms)->delimiter(',');
    recurrent->add_option("--layout", options.layouts, "packed, padded")->delimiter(',');
    recurrent->add_option("--seconds", options.seconds, "of samples for each figure")->check(CLI::PositiveNumber);
    convolution->add_option("--direction", options.directions, "fwd, dgrad, wgrad")->delimiter(',');
    recurrent->add_option("--direction", options.directions, "fwd, bwd, wgrad")->delimiter(',');
    for (CLI::App* command : {convolution, recurrent})
        command->add_option("--precision", options.precisions, "fp16, bf16, tf32, fp32, fp64")->delimiter(',');
    try {
        app.parse(count, arguments);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (!cudnn_unavailable().empty()) throw DeviceError(cudnn_unavailable());
    const std::unique_ptr<Device> device = make_cuda_device();
    const GpuInfo& gpu = *device->info().gpu;
    print({{"gpu", gpu.name}, {"gpu_uuid", gpu.uuid}, {"cuda_runtime", gpu.cuda_runtime}, {"cudnn", cudnn_version()}});
    const cudnn::Handle handle = cudnn::make_handle();
    const bool done = *convolution ? time_convolutions(options, handle) : time_recurrent(options, handle);
    return done ? 0 : 1;
}

}  // namespace
}  // namespace kbench

int main(int count, char** arguments) {
    try {
        return kbench::run(count, arguments);
    } catch (const kbench::UsageError& error) {
        std::cerr << "cudnn_peer: " << error.what() << '\n';
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "cudnn_peer: " << error.what() << '\n';
        return 3;
    }
}
