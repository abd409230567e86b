// A point's model, who computes its steps and what that takes of memory, before anything of it is measured.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/measure/sweep/run_options.h"
#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "kbench/result.h"
#include "models/registry.h"

namespace kbench {

/// The point at that place in the sweep before it is measured. Its batch is 1 where it was asked for as "max".
Point unmeasured_point(const RunOptions& options, const Device& device, const PointSpec& spec);

/// Plans of the points of one run; `options` and `device` must outlive it.
class PointPlans {
  public:
    PointPlans(const RunOptions& options, Device& device);

    /// How much smaller the next batch is where one does not fit after all. What a plan does not know (contexts,
    /// fragments) is a few per cent of the memory.
    static constexpr double max_batch_step = 0.95;

    /// Without the axes on which shapes do not depend; the point has them.
    ModelPoint model_point(const Point& point, std::int64_t batch) const;
    /// The model at that batch, with what the point's direction asks for.
    Model model(const Point& point, std::int64_t batch) const;
    static Model in_direction(const Point& point, Model forward);
    std::vector<AssignedStep> assign(const Model& model, Precision precision) const;

    /// The largest batch of the point's model whose plan takes at most `available` bytes, by what computations
    /// announce; 0 when there is none. Throws Unsupported where the model, or a provider, cannot do what the point
    /// asks.
    std::int64_t announced_largest(const Point& point, std::int64_t available) const;
    /// The same; by plans where what was announced was too little.
    std::int64_t largest(const Point& point, std::int64_t available) const;

    /// What providers could not do, in their words.
    std::vector<std::string> warnings() const;

  private:
    /// Bytes of the point's plan at `batch`, with every computation made: some announce less than they take. Nothing
    /// where not even that could be done, as tuning takes memory, too.
    std::optional<std::int64_t> planned_bytes(const Point& point, std::int64_t batch) const;

    const RunOptions& options_;
    Device& device_;
    std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace kbench
