// A recurrent layer of cuDNN's, both directions, as a peer of kbench's: by each of its algorithms, checked and timed,
// forward and backward.
//
// cuDNN multiplies the input within the call, kbench's op begins behind that product. So the input is narrow here, as
// wide as eight numbers: beside the product with h, at 256 to 2048 units, that one is nothing. Backward likewise: dx
// and the gradient of the input's weights come along.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "tests/peers/recurrent_call.h"

namespace kbench::cudnn {

struct RecurrentTimes {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double step_us = none;           ///< a call through all steps, divided by them: launched as PyTorch does
    double graph_step_us = none;     ///< the same as a CUDA graph
    double marginal_step_us = none;  ///< by twice as many steps, as a graph or, where there is none, as launches
    double error = none;             ///< largest_error of what it computes, from the standard algorithm's, packed
    std::size_t workspace_bytes = 0;
    std::string no_graph;  ///< why, where there is none
};

/// A problem on a device.
class RecurrentPeer {
  public:
    RecurrentPeer(Device& device, const Handle& handle, const RecurrentProblem& problem);
    /// Throws Unsupported with cuDNN's reason where the algorithm does not take the problem, and DeviceError where it
    /// fails or computes something else than the standard one. `seconds`: of samples for each figure.
    RecurrentTimes time(Direction direction, std::string_view algorithm, std::string_view layout, double seconds);
    /// largest_error of an algorithm against the fp64 reference; throws as time.
    double error_against_reference(Direction direction, std::string_view algorithm, std::string_view layout);

  private:
    RecurrentCall call(Direction direction, std::string_view algorithm, std::string_view layout, std::int64_t steps);
    double time_us(RecurrentCall& call, DeviceGraph* graph, double seconds);

    Device& device_;
    Handle handle_;
    RecurrentLayer layer_;
    RecurrentMemory memory_;
    std::map<Direction, Parts> standard_;  ///< what the standard algorithm computes, once it is known
};

/// What an error may be: of an h of rounded numbers and approximate functions, and of gradients made from it. A wrong
/// gate makes 0.1 or more.
double recurrent_tolerance(Direction direction, Precision precision);

}  // namespace kbench::cudnn
