// A thread that sleeps until the time is over. It takes no lock but its own and the file's: the thread that hangs holds
// the others.
#include "profile/attach/watchdog.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "profile/attach/record_file.h"

namespace kbench::attach {
namespace {

using Clock = std::chrono::steady_clock;

struct Watchdog {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Clock::time_point> end;  ///< nothing while nothing is watched
    std::string why;
    bool runs = false;
};

/// Never destroyed: its thread runs until the process ends.
Watchdog& watchdog() {
    static Watchdog& one = *new Watchdog;
    return one;
}

void run() {
    Watchdog& dog = watchdog();
    std::unique_lock lock(dog.mutex);
    for (;;) {
        if (!dog.end) {
            dog.changed.wait(lock);
        } else if (Clock::now() < *dog.end) {
            dog.changed.wait_until(lock, Clock::time_point(*dog.end));
        } else {
            note(dog.why);
            write_last_line(R"({"kind":"end"})");
            _exit(hung);
        }
    }
}

}  // namespace

void watch(std::chrono::milliseconds most, std::string why) {
    Watchdog& dog = watchdog();
    const std::lock_guard lock(dog.mutex);
    dog.end = Clock::now() + most;
    dog.why = std::move(why);
    if (!std::exchange(dog.runs, true)) std::thread(run).detach();
    dog.changed.notify_all();
}

void unwatch() {
    Watchdog& dog = watchdog();
    const std::lock_guard lock(dog.mutex);
    dog.end.reset();
    dog.changed.notify_all();
}

}  // namespace kbench::attach
