// What a run left in one of a model's outputs, brought to the host: is it numbers, and does every run give the same?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/plan.h"
#include "cpu/reference/reference.h"

namespace kbench {

class OutputRows {
  public:
    /// Enough for every row at usual batches, and little compared with a host's memory.
    static constexpr std::int64_t usual_bytes = std::int64_t{1} << 30;

    /// Rows as `kept` says, one after another; the first of them is row 0 and each is row `every` * its index.
    OutputRows(std::string name, Operand kept, std::vector<std::byte> bytes, std::int64_t every = 1)
        : name_(std::move(name)), kept_(std::move(kept)), bytes_(std::move(bytes)), every_(every) {}
    /// Rows of output `id` of `plan`'s last run: all, or evenly spaced ones where all take more than `most_bytes`.
    static OutputRows download(const Plan& plan, TensorId id, Device& device, std::int64_t most_bytes);

    const Operand& operand() const { return kept_; }
    const void* data() const { return bytes_.data(); }
    std::int64_t count() const { return kept_.rows * kept_.columns; }

    /// Empty when `other`, from another run on the same input, has the same bits. Otherwise how many elements differ,
    /// the largest difference and the first row: kernels that add in a fixed order give the same bits each time, so a
    /// difference means a race, or a library that adds in the order in which blocks happen to finish.
    std::string difference(const OutputRows& other) const;

  private:
    reference::View view() const;

    std::string name_;
    Operand kept_;
    std::vector<std::byte> bytes_;
    std::int64_t every_;
};

/// Elements of output `id` of the last run of `plan` that are NaN or infinite, of all rows.
std::int64_t count_not_finite(const Plan& plan, TensorId id, Device& device);

/// Bytes of all outputs of a model laid out so.
std::int64_t output_bytes(const Model& model, const Layout& layout);

}  // namespace kbench
