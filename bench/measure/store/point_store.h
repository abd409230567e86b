// The finished points of a sweep on disk: out/points/NAME.json, each a complete result of one point, written once. So a
// sweep of any length costs each point one small file, and what is finished survives whatever ends the process.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/measure/point/point_spec.h"
#include "kbench/result.h"

namespace kbench {

/// By the point's name.
using FinishedPoints = std::map<std::string, Result>;

class PointStore {
  public:
    /// Makes out/points and removes what a killed process left half-written there; who runs a command holds `out`
    /// (FolderLock). Throws UsageError when that cannot be done.
    explicit PointStore(const std::filesystem::path& out);

    /// Writes the result of this one point, completely or not at all.
    void save(const PointSpec& spec, const Result& one) const;

    /// The points that an earlier run of this sweep finished: done or skipped; failed ones are to be run again. `mine`:
    /// environment and options of this run. A file that cannot be read is put aside as NAME.json.unreadable, with a
    /// warning. Throws UsageError, one line, when a point was measured by another kbench, on another device or with
    /// other options, or `specs` has no such point.
    FinishedPoints finished(const std::vector<PointSpec>& specs, const Result& mine,
                            std::vector<std::string>& warnings) const;

  private:
    std::filesystem::path directory_;
};

/// Whether `out` holds points of an earlier run.
bool holds_points(const std::filesystem::path& out);

}  // namespace kbench
