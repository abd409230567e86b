// The logits that a forward left behind, brought to the host: are they numbers, and does every forward give the same?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/backend.h"
#include "bench/plan.h"
#include "cpu/reference/reference.h"

namespace kbench {

class Logits {
  public:
    Logits(Operand operand, std::vector<std::byte> bytes) : operand_(operand), bytes_(std::move(bytes)) {}
    /// Of the last forward of `plan`.
    static Logits download(const Plan& plan, Backend& backend);

    const Operand& operand() const { return operand_; }
    const void* data() const { return bytes_.data(); }
    std::int64_t count() const { return operand_.rows * operand_.columns; }
    std::int64_t count_not_finite() const;

    /// Empty when `other`, from another forward on the same input, has the same bits. Otherwise how many logits differ,
    /// the largest difference and the first row: kernels that add in a fixed order give the same bits each time, so a
    /// difference means a race, or a library that adds in the order in which blocks happen to finish.
    std::string difference(const Logits& other) const;

  private:
    reference::View view() const;

    Operand operand_;
    std::vector<std::byte> bytes_;
};

}  // namespace kbench
