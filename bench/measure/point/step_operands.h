// The operands of one step by itself, filled with seeded random numbers: what a step is verified on, and timed on
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "bench/device/device.h"
#include "cpu/reference/reference.h"
#include "kbench/provider.h"

namespace kbench {

/// A step's operands on the device, and on the host what the reference reads of them: no output, which at the largest
/// batches may be all that the device can hold. On a CPU both are the same memory unless a layout is packed.
class StepOperands {
  public:
    /// Outputs are filled with NaN. Whole numbers of which all are usually the same, such as lengths, differ: the first
    /// is the usual one, the others are `most_of_others` at the most. The reference's work on sequences grows with
    /// them.
    StepOperands(const Step& step, const Computation& computation, Precision precision, Device& device,
                 std::uint64_t seed, std::int64_t most_of_others = std::numeric_limits<std::int32_t>::max());

    const std::vector<Operand>& list() const { return list_; }
    std::span<const reference::View> views() const { return views_; }
    std::span<void* const> pointers() const { return pointers_; }
    /// On the device, packed or not.
    std::size_t bytes(std::size_t operand) const { return memory_[operand].bytes(); }
    /// Gives whole numbers their usual values, with which a step does the work of its cost, and frees what the host
    /// holds; views() are of no use afterwards.
    void make_usual();

  private:
    void add(const Computation& computation, std::size_t i);
    void fill(std::size_t i, bool usual, std::byte* data) const;

    Device& device_;
    std::uint64_t seed_;
    std::int64_t most_of_others_;
    std::vector<Operand> list_;
    std::vector<std::unique_ptr<std::byte[]>> host_;
    std::vector<reference::View> views_;
    std::vector<DeviceBuffer> memory_;
    std::vector<void*> pointers_;
};

}  // namespace kbench
