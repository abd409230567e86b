// Where a command that measures puts its results, and what every such result warns of.
#pragma once

#include <filesystem>
#include <string>

#include "bench/device/device.h"
#include "kbench/result.h"

namespace kbench {

/// The directory for results, made and proven writable before anything is measured: `asked`, or
/// kbench-runs/<time>-<what> where that is empty. Throws UsageError; also where `asked` holds a result already, but for
/// that of a sweep that is to be resumed.
std::filesystem::path prepare_directory(const std::filesystem::path& asked, const std::string& what,
                                        bool resume = false);

/// What of device, build and options makes a result less than it could be. `remark` as choose_devices gives it.
void add_run_warnings(Result& result, const Device& device, const std::string& remark, bool verified);

}  // namespace kbench
