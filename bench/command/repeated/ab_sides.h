// The two sides of `kbench ab`: what is run, and which figures of a run are compared.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/ab.h"
#include "bench/command/repeated/ab_options.h"

namespace kbench {

class AbSides {
  public:
    virtual ~AbSides() = default;

    /// Runs each once, which does not count; sides of kbench only where they are verified. Throws UsageError where a
    /// command is wrong, MeasurementError where it fails.
    virtual void begin() = 0;
    /// Runs one of each, `first` of them first: the figures of both, by point. Throws as begin().
    virtual std::vector<std::pair<std::string, AbPair>> take_pair(char first) = 0;

  protected:
    explicit AbSides(const AbRequest& request) : request_(request) {}
    const AbCommand& command(char side) const { return side == 'A' ? request_.a_command : request_.b_command; }
    /// Where the next run puts what it leaves: run-NNN-A in --out.
    std::filesystem::path next_run(char side);
    const AbRequest& request_;

  private:
    int runs_ = 0;
};

/// Those that `request` asks for. What is learnt of the sides, and whether they were verified, goes to `comparison`;
/// both must outlive it.
std::unique_ptr<AbSides> ab_sides(const AbRequest& request, AbComparison& comparison);

}  // namespace kbench
