// The thread sleeps between two looks.
#include "bench/measure/point/call_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "bench/device/console.h"
#include "bench/plan/current_call.h"

namespace kbench {

CallProgress::Finding CallProgress::look(const Seen& seen, double now_s) {
    const bool moved = !looked_ || seen.name != last_.name || seen.count != last_.count;
    if (moved) {
        moved_s_ = now_s;
        next_notice_s_ = options_.notice_s;
    }
    if (seen.stop && (!last_.stop || !looked_)) asked_s_ = now_s;
    looked_ = true;
    last_ = seen;
    if (seen.stop && now_s - std::max(moved_s_, asked_s_) >= options_.patience_s) return Finding::stuck;
    if (seen.name == nullptr || still_s(now_s) < next_notice_s_) return Finding::nothing;
    next_notice_s_ *= 2;
    return Finding::slow_call;
}

CallWatch::CallWatch(WatchOptions options, std::function<bool()> stop, std::function<void(const std::string&)> end)
    : options_(options), stop_(std::move(stop)), end_(std::move(end)), thread_([this] { run(); }) {}

CallWatch::~CallWatch() {
    {
        const std::lock_guard lock(guard_);
        is_over_ = true;
    }
    ended_.notify_all();
    thread_.join();
}

void CallWatch::run() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    CallProgress progress(options_);
    std::unique_lock lock(guard_);
    while (!ended_.wait_for(lock, std::chrono::duration<double>(options_.look_s), [this] { return is_over_; })) {
        const double now_s = std::chrono::duration<double>(Clock::now() - start).count();
        const CallProgress::Seen seen{CurrentCall::name(), CurrentCall::count(), stop_()};
        const CallProgress::Finding finding = progress.look(seen, now_s);
        if (finding == CallProgress::Finding::nothing) continue;
        const std::string call =
            seen.name == nullptr ? ""
                                 : fmt::format("{} has not returned for {:.3g} s", seen.name, progress.still_s(now_s));
        if (finding == CallProgress::Finding::slow_call)
            say("kbench: {}; SIGTERM or SIGINT ends kbench\n", call);
        else
            end_(call);
    }
}

}  // namespace kbench
