// Events of Chrome's trace format (Trace Event Format, JSON object form), which Perfetto reads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace kbench {

/// Moments and durations are whole nanoseconds, so that neighbours meet exactly; a file has them in microseconds.
using Nanoseconds = std::int64_t;

/// Rounded; a value that is not finite or longer than days is 0.
Nanoseconds nanoseconds(double us);

/// A number of an argument: five significant digits, more than a measurement has; null where it is not finite.
nlohmann::ordered_json brief(double value);

/// Text of any bytes: what is not UTF-8 is replaced when it is written.
class TraceEvents {
  public:
    using Json = nlohmann::ordered_json;

    /// A group of tracks; they stand in the order in which they were added. Gives its id.
    int process(std::string_view name);
    /// A track of slices of a process. Gives its id.
    int track(int process, std::string_view name);
    /// A complete event ("X"). Slices of one track must nest or follow one another; an outer one comes first.
    void slice(int process, int track, std::string_view name, Nanoseconds start, Nanoseconds end, Json args);
    /// A step of counters ("C"), a track each: their values by name from `at` on. Names together, as each event costs
    /// 60 bytes beside its values.
    void counters(int process, std::string_view name, Nanoseconds at, Json values);

    /// The file, one event a line, with `metadata` as its otherData.
    std::string text(const Json& metadata) const;

  private:
    void describe(std::string_view what, int process, int track, std::string_view name);

    std::vector<std::string> events_;
    int processes_ = 0, tracks_ = 0;
};

}  // namespace kbench
