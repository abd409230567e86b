// The errors that kbench throws. Each reaches main once and becomes one line on stderr and an exit code.
// Every folder may include this header; it knows no device.
//
//     throw kbench::UsageError("--batch 0: must be at least 1");  // main prints this line and exits with 2
#pragma once

#include <stdexcept>
#include <string>

namespace kbench {

/// Exit codes of the command line; see README.md.
enum class ExitCode : int { success = 0, failed = 1, usage = 2, device = 3 };

/// Base of all typed errors. `what()` is one line that says which value is wrong and what would be right.
class Error : public std::runtime_error {
  public:
    Error(ExitCode code, const std::string& line) : std::runtime_error(line), code_(code) {}
    ExitCode code() const noexcept { return code_; }

  private:
    ExitCode code_;
};

/// Bad usage or input (exit 2).
struct UsageError : Error {
    explicit UsageError(const std::string& line) : Error(ExitCode::usage, line) {}
};

/// A verification or a measurement failed (exit 1).
struct MeasurementError : Error {
    explicit MeasurementError(const std::string& line) : Error(ExitCode::failed, line) {}
};

/// The device, its memory or a needed permission is missing (exit 3).
struct DeviceError : Error {
    explicit DeviceError(const std::string& line) : Error(ExitCode::device, line) {}
};

/// A provider cannot compute this step here, for the reason given. It becomes a skip in the result, not a failure.
struct Unsupported : Error {
    explicit Unsupported(const std::string& reason) : Error(ExitCode::device, reason) {}
};

}  // namespace kbench
