// Where a model's weights come from: one interface, so that the planner need not know whether they are random or
// trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "bench/plan/data/random.h"
#include "bench/plan/data/safetensors.h"
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

class SafetensorsWeights final : public WeightSource {
  public:
    /// Throws UsageError when the file is damaged.
    explicit SafetensorsWeights(const std::filesystem::path& path) : file_(path) {}
    /// Throws UsageError when a weight of `model` is missing or of the wrong shape or type, before any memory is
    /// planned.
    void check(const Model& model) const { file_.check(model); }
    void read(const Tensor& tensor, DataType type, void* destination, std::int64_t row_stride_elements) override {
        file_.load(tensor, type, destination, row_stride_elements);
    }
    std::string name() const override { return file_.path().filename().string(); }

  private:
    Safetensors file_;
};

}  // namespace kbench
