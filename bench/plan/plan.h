// A plan: the steps of a model assigned to providers, with their memory. Laid out on paper first (Layout), so that the
// peak is known before anything is allocated; then allocated, filled with weights, and run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/arena.h"
#include "bench/plan/data/weights.h"
#include "bench/plan/fuse.h"
#include "kbench/result.h"

namespace kbench {

/// Where one tensor will lie.
struct TensorPlace {
    Operand operand;  ///< type, shape and stride, as its steps want it
    bool used = false;
    bool resident = false;    ///< in memory of its own, filled by a WeightSource: a weight, or what says so itself
    std::int64_t offset = 0;  ///< in the arena, for all others
    TensorId same_as;         ///< another tensor's place, for outputs made in place; itself otherwise
};

/// One step with its computation, shared by all steps that are equal.
struct PlannedStep : AssignedStep {
    std::shared_ptr<Computation> computation;
    const char* call = nullptr;  ///< see CurrentCall
};

/// Memory on paper.
struct Layout {
    std::vector<TensorPlace> places;
    std::int64_t arena_bytes = 0;
    MemoryPlan memory;
};

/// Places of all tensors. `packed_bytes(step, operand)` is what a computation wants for a packed weight (0: plain), and
/// `workspace_bytes` the largest workspace of any step.
Layout lay_out(const Model& model, Precision precision, const std::vector<AssignedStep>& steps,
               const std::function<std::int64_t(std::size_t step, std::size_t operand)>& packed_bytes,
               std::int64_t workspace_bytes);

/// The largest batch whose plan fits into `available` bytes, by the layout's own arithmetic; 0 when not even one does.
/// `bytes_at` gives the total for a batch and must not decrease.
std::int64_t largest_batch(const std::function<std::int64_t(std::int64_t batch)>& bytes_at, std::int64_t available);

class Plan {
  public:
    /// Makes each distinct computation once (this may measure GEMM algorithms) and lays memory out.
    Plan(const Model& model, Precision precision, std::vector<AssignedStep> steps);

    const Model& model() const { return *model_; }
    Precision precision() const { return precision_; }
    const std::vector<PlannedStep>& steps() const { return steps_; }
    /// The first step that is timed: those before it run once, and what they make stays (Model::untimed_ops).
    std::size_t first_timed() const { return first_timed_; }
    std::span<const PlannedStep> timed_steps() const { return std::span(steps_).subspan(first_timed_); }
    const Layout& layout() const { return layout_; }

    /// Allocates, then reads every weight once from `source`, packing it where its step wants that.
    void allocate(Device& device, WeightSource& source);
    /// Fills input `id` of the model with `bytes` that lie as its operand does.
    void set_input(TensorId id, std::span<const std::byte> bytes);

    /// Enqueues step `index` on `stream`.
    void run_step(std::size_t index, void* stream) const;
    /// The same by `computation`, another one of the step that reads weights as they lie, with a workspace of its own.
    void run_step(std::size_t index, const Computation& computation, void* workspace, void* stream) const;
    /// Computation::account of step `index`, whose operands must be there: all before it have run since.
    std::optional<StepAccount> account_of_step(std::size_t index, void* stream) const;

    /// Where a tensor lies on the device once memory is allocated, and how.
    void* address(TensorId id) const;
    const Operand& operand(TensorId id) const { return layout_.places[id].operand; }

  private:
    const Model* model_;
    Precision precision_;
    std::vector<PlannedStep> steps_;
    std::size_t first_timed_ = 0;
    Layout layout_;
    Device* device_ = nullptr;
    DeviceBuffer arena_, workspace_;
    std::vector<DeviceBuffer> weights_;  ///< resident tensors, by tensor; empty where only packed forms are needed
    std::vector<DeviceBuffer> packed_;
    std::vector<std::vector<void*>> pointers_;  ///< by step, parallel to its operands
};

}  // namespace kbench
