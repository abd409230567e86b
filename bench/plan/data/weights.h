// Where a model's weights come from: one interface, so that the planner need not know whether they are random or
// trained (checkpoint.h).
#pragma once

#include <cstdint>
#include <string>

#include "bench/plan/data/random.h"
#include "models/model.h"

namespace kbench {

class WeightSource {
  public:
    virtual ~WeightSource() = default;
    /// Writes one weight to host memory, rows `row_stride_elements` apart; what lies between them is left alone.
    virtual void read(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride_elements) = 0;
    /// For the result: "random" or the file's name.
    virtual std::string name() const = 0;
};

class RandomWeights final : public WeightSource {
  public:
    explicit RandomWeights(std::uint64_t seed) : seed_(seed) {}
    void read(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride_elements) override {
        fill_random(tensor, seed_, type, destination, row_stride_elements);
    }
    std::string name() const override { return "random"; }

  private:
    std::uint64_t seed_;
};

}  // namespace kbench
