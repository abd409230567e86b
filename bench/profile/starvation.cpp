// A chunk of samples may take microseconds, and looking takes longer.
#include "bench/profile/starvation.h"

#include <algorithm>
#include <chrono>

namespace kbench {
namespace {

constexpr double usual_s = 0.05;

/// Time between answers over the time that looking takes.
constexpr double sparing = 20;

}  // namespace

double StarvationWatch::steady_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void StarvationWatch::begin() {
    clean_ = all_ = {};
    from_ = machine_.cpu_counts();
    apart_s_ = from_ ? std::max(usual_s, sparing * (now_s_() - from_->at_s)) : 0;
}

std::optional<bool> StarvationWatch::lacked(bool last) {
    if (!from_) return false;
    if (!last && now_s_() - from_->at_s < apart_s_) return std::nullopt;
    std::optional<CpuCounts> to = machine_.cpu_counts();
    if (!to) return false;
    const CpuUse use = used(*from_, *to);
    const double looking_s = now_s_() - to->at_s;
    from_ = std::move(to);
    const bool lacked = share_of(use).starved();
    apart_s_ = std::max(sparing * looking_s, lacked ? 0 : std::min(usual_s, 2 * apart_s_));
    add(all_, use);
    if (!lacked) add(clean_, use);
    return lacked;
}

std::optional<CpuShare> StarvationWatch::share(bool of_all) const {
    if (!from_) return std::nullopt;
    CpuShare share = share_of(of_all ? all_ : clean_);
    // Throttling by a quota stays, however often samples are repeated.
    const CpuShare whole = share_of(all_);
    share.quota_periods = whole.quota_periods;
    share.throttled_periods = whole.throttled_periods;
    return share;
}

}  // namespace kbench
