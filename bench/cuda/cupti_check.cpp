// Turns failed CUPTI calls into DeviceError.
#include "bench/cuda/cupti_check.h"

#include <cupti.h>
#include <fmt/format.h>

#include <string_view>

#include "models/error.h"

namespace kbench::cuda {

void check(CUptiResult status, const char* call, const char* file, int line) {
    if (status == CUPTI_SUCCESS) return;
    const char *name = nullptr, *message = nullptr;
    cuptiGetResultString(status, &name);
    cuptiGetErrorMessage(status, &message);
    const std::string_view path = file;
    throw DeviceError(fmt::format("{} failed at {}:{}: {} ({})", call, path.substr(path.find_last_of('/') + 1), line,
                                  name != nullptr ? name : fmt::to_string(static_cast<int>(status)),
                                  message != nullptr ? message : "CUPTI says no more"));
}

}  // namespace kbench::cuda
