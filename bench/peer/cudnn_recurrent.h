// A recurrent layer of cuDNN's, both directions, as a peer of kbench's: by each of its algorithms, checked and timed.
//
// cuDNN multiplies the input within the call, kbench's op begins behind that product. So the input is narrow here, as
// wide as eight numbers: beside the product with h, at 256 to 2048 units, that one is nothing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "bench/device/device.h"
#include "kbench/precision.h"
#include "models/ops/recurrent.h"

struct cudnnContext;

namespace kbench::cudnn {

struct RecurrentProblem {
    Cell cell = Cell::lstm;
    Precision precision = Precision::fp16;
    std::int64_t hidden = 1024, batch = 1, steps = 100, input = 8;
};

/// cudnnRNNAlgo_t, in its order.
inline constexpr std::string_view recurrent_algorithms[] = {"standard", "persist_static", "persist_dynamic",
                                                            "persist_static_small_h"};
/// How cuDNN is told that all sequences are full; in memory both are the same.
inline constexpr std::string_view recurrent_layouts[] = {"packed", "padded"};

struct RecurrentTimes {
    static constexpr double none = std::numeric_limits<double>::quiet_NaN();
    double step_us = none;           ///< a forward through all steps, divided by them: launched as PyTorch does
    double graph_step_us = none;     ///< the same as a CUDA graph
    double marginal_step_us = none;  ///< of the graph, or where there is none of launches: by twice as many steps
    double error = none;             ///< ||h - peer's|| / ||peer's||; of the standard algorithm, packed: 0
    std::size_t workspace_bytes = 0;
    std::string no_graph;  ///< why, where there is none
};

/// A problem on a device.
class RecurrentPeer {
  public:
    RecurrentPeer(Device& device, const std::shared_ptr<cudnnContext>& handle, const RecurrentProblem& problem);
    ~RecurrentPeer();
    /// Throws Unsupported with cuDNN's reason where the algorithm does not take the problem, and DeviceError where it
    /// fails or computes something else than the standard one. `seconds`: of samples for each figure.
    RecurrentTimes time(std::string_view algorithm, std::string_view layout, double seconds);
    /// ||h - reference|| / ||reference|| of an algorithm against the fp64 reference, of both directions; throws as
    /// time.
    double error_against_reference(std::string_view algorithm, std::string_view layout);

  private:
    class State;
    std::unique_ptr<State> state_;
};

/// What an error may be: of an h of rounded numbers and approximate functions. A wrong gate makes 0.1 or more.
double recurrent_tolerance(Precision precision);

}  // namespace kbench::cudnn
