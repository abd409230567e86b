// One of cuDNN's algorithms for a recurrent layer, made ready for one direction of the op.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/device/device.h"
#include "bench/plan/providers/cuda/cudnn_handle.h"
#include "tests/peers/recurrent_layer.h"

namespace kbench::cudnn {

/// cudnnRNNAlgo_t, in its order.
inline constexpr std::string_view recurrent_algorithms[] = {"standard", "persist_static", "persist_dynamic",
                                                            "persist_static_small_h"};
/// How cuDNN is told that all sequences are full; in memory both are the same.
inline constexpr std::string_view recurrent_layouts[] = {"packed", "padded"};

/// What a layer reads and makes, on a device; algorithms take turns on it.
struct RecurrentMemory {
    RecurrentMemory(Device& on, const RecurrentLayer& layer);
    /// Where they are not yet there.
    void add_gradients(const RecurrentLayer& layer);

    Device& device;
    DeviceBuffer x, y, lengths;
    DeviceBuffer dy, dx;
};

/// fwd: cudnnRNNForward in inference. bwd: cudnnRNNBackwardData_v8, after a forward in training. wgrad:
/// cudnnRNNBackwardWeights_v8 after both, added to zeros.
class RecurrentCall {
  public:
    /// For the first `steps` of the layer's numbers. Runs once, outside of any capture: that loads kernels, and an
    /// algorithm may refuse there only. Throws Unsupported with cuDNN's reason, and UsageError for unknown names.
    RecurrentCall(RecurrentMemory& memory, const Handle& handle, const RecurrentLayer& layer, Direction direction,
                  std::string_view algorithm, std::string_view layout, std::int64_t steps);
    ~RecurrentCall();

    /// Whether `prepare` does anything: a backward works on what the forward has left, and leaves something else.
    bool has_preparation() const;
    /// Enqueues what has to be there before a launch, and is no part of it.
    void prepare();
    void launch();
    /// What a launch writes on poisoned memory.
    Parts output();
    std::size_t workspace_bytes() const;

  private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace kbench::cudnn
