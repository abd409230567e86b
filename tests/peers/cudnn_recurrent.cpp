#include "tests/peers/cudnn_recurrent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kbench::cudnn {
namespace {

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

RecurrentPeer::RecurrentPeer(Device& device, const Handle& handle, const RecurrentProblem& problem)
    : device_(device), handle_(handle), layer_(problem), memory_(device, layer_) {}

RecurrentCall RecurrentPeer::call(Direction direction, std::string_view algorithm, std::string_view layout,
                                  std::int64_t steps) {
    return {memory_, handle_, layer_, direction, algorithm, layout, steps};
}

/// Times a launch, or the graph where there is one. Launches that want no preparation follow each other between two
/// events; the others have two each, and the device is busy with the preparation while they are enqueued.
double RecurrentPeer::time_us(RecurrentCall& call, DeviceGraph* graph, double seconds) {
    constexpr double sample_us = 2000;  ///< long compared with what events and the first launch on an idle device add
    constexpr std::size_t fewest = 5;
    struct Mark {
        std::unique_ptr<DeviceEvent> before, after;
    };
    std::vector<Mark> marks;
    const bool apart = call.has_preparation();
    const auto run_us = [&](int launches) {
        const auto spans = static_cast<std::size_t>(apart ? launches : 1);
        while (marks.size() < spans) marks.push_back({device_.make_event(), device_.make_event()});
        for (std::size_t span = 0; span < spans; ++span) {
            if (apart) call.prepare();
            marks[span].before->record();
            for (int i = 0; i < (apart ? 1 : launches); ++i) graph != nullptr ? graph->launch() : call.launch();
            marks[span].after->record();
        }
        device_.synchronize();
        double us = 0;
        for (std::size_t span = 0; span < spans; ++span) us += 1e3 * marks[span].after->ms_since(*marks[span].before);
        return us / launches;
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

RecurrentTimes RecurrentPeer::time(Direction direction, std::string_view algorithm, std::string_view layout,
                                   double seconds) {
    const std::int64_t steps = layer_.problem.steps;
    RecurrentTimes times;
    {
        // Before the first of its kind: calls share their output's memory.
        if (!standard_.contains(direction))
            standard_[direction] = call(direction, "standard", "packed", steps).output();
        RecurrentCall made = call(direction, algorithm, layout, steps);
        times.error = largest_error(made.output(), standard_.at(direction));
        if (times.error > recurrent_tolerance(direction, layer_.problem.precision))
            throw DeviceError(fmt::format("differs from the standard algorithm by {:.2g}", times.error));
        times.workspace_bytes = made.workspace_bytes();
        times.step_us = time_us(made, nullptr, seconds) / static_cast<double>(steps);
        try {
            const std::unique_ptr<DeviceGraph> graph = device_.capture([&] { made.launch(); });
            times.graph_step_us = time_us(made, graph.get(), seconds) / static_cast<double>(steps);
        } catch (const DeviceError& error) {
            times.no_graph = error.what();
            cudaGetLastError();  // what the capture left is no error of the next call
        }
    }
    RecurrentCall longer = call(direction, algorithm, layout, 2 * steps);
    const bool has_graph = times.no_graph.empty();
    std::unique_ptr<DeviceGraph> graph;
    if (has_graph) graph = device_.capture([&] { longer.launch(); });
    times.marginal_step_us = time_us(longer, graph.get(), seconds) / static_cast<double>(steps) -
                             (has_graph ? times.graph_step_us : times.step_us);
    return times;
}

double RecurrentPeer::error_against_reference(Direction direction, std::string_view algorithm,
                                              std::string_view layout) {
    return largest_error(call(direction, algorithm, layout, layer_.problem.steps).output(),
                         layer_.reference(direction));
}

double recurrent_tolerance(Direction direction, Precision precision) {
    const bool forward = direction == Direction::fwd;
    switch (precision) {
        case Precision::fp16:
        case Precision::tf32: return forward ? 5e-3 : 1e-2;
        case Precision::bf16: return forward ? 4e-2 : 8e-2;
        case Precision::fp32: return forward ? 2e-5 : 1e-4;
        default: return forward ? 1e-12 : 1e-11;
    }
}

}  // namespace kbench::cudnn
