// A thread that checks once in a while whether calls still return. It names a call that does not, and ends a process
// that was asked to stop and cannot.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace kbench {

struct WatchOptions {
    double look_s = 1;       ///< between two looks
    double notice_s = 60;    ///< after so long in one call it is named; again after twice as long
    double patience_s = 10;  ///< after being asked to stop, without a call that begins or ends
};

/// Decides what a look finds to do. Pure, for tests: times are in seconds of any clock.
class CallProgress {
  public:
    explicit CallProgress(WatchOptions options) : options_(options), next_notice_s_(options.notice_s) {}

    /// `name`: the call under way, null between calls; `count`: calls so far; `stop`: a stop was asked for and not yet
    /// noticed.
    struct Seen {
        const char* name = nullptr;
        std::uint64_t count = 0;
        bool stop = false;
    };
    enum class Finding { nothing, slow_call, stuck };
    Finding look(const Seen& seen, double now_s);

    /// Since when nothing has moved.
    double still_s(double now_s) const { return now_s - moved_s_; }

  private:
    WatchOptions options_;
    Seen last_;
    double moved_s_ = 0, next_notice_s_, asked_s_ = 0;
    bool looked_ = false;
};

class CallWatch {
  public:
    /// `stop` is as in Seen. `end` gets what has not returned, and must not return itself.
    CallWatch(WatchOptions options, std::function<bool()> stop, std::function<void(const std::string& what)> end);
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;

  private:
    void run();

    WatchOptions options_;
    std::function<bool()> stop_;
    std::function<void(const std::string&)> end_;
    std::mutex guard_;
    std::condition_variable ended_;
    bool is_over_ = false;
    std::thread thread_;
};

}  // namespace kbench
