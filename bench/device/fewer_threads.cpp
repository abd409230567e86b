// OpenMP ends threads that a team does not need, and starts new ones, which must be pinned again.
#include "bench/device/fewer_threads.h"

#include <fmt/format.h>

#include <vector>

#include "cpu/threads.h"
#include "kbench/error.h"

namespace kbench {
namespace {

bool have_threads(const DeviceInfo& info, int threads) {
    if (!info.pinned) return cpu::start_threads(threads) == threads;
    return cpu::pin_threads(std::vector<int>(info.cpus.begin(), info.cpus.begin() + threads));
}

}  // namespace

FewerThreads::FewerThreads(const Device& device, int threads) {
    const DeviceInfo& info = device.info();
    if (threads == info.threads) return;
    changed_ = &info;
    if (have_threads(info, threads)) return;
    have_threads(info, info.threads);
    throw DeviceError(fmt::format("{} of {} threads cannot be had", threads, info.threads));
}

FewerThreads::~FewerThreads() {
    if (changed_ != nullptr) have_threads(*changed_, changed_->threads);
}

}  // namespace kbench
