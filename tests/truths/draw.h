// What a seed decides of a truth: sizes, shares and counts within ranges in which the truth holds.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace kbench {

/// Whole numbers from `low` to `high`, both included, in steps of `step`.
struct DrawRange {
    std::string_view what;
    std::int64_t low = 0, high = 0, step = 1;
};

/// One number for each range of a truth.
class Drawn {
  public:
    void set(std::string_view what, std::int64_t value) { values_[std::string(what)] = value; }
    /// Throws std::out_of_range for a name without a range.
    std::int64_t operator[](std::string_view what) const { return values_.at(std::string(what)); }
    bool operator==(const Drawn&) const = default;

  private:
    std::map<std::string, std::int64_t> values_;
};

/// Draws the same on every machine. Truths draw independently: other truths change nothing.
Drawn draw(std::string_view truth, std::uint64_t seed, std::span<const DrawRange> ranges);

}  // namespace kbench
