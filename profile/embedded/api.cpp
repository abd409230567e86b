// What kbench/profile.h calls. Nothing of it may end or disturb the program that it is in: whatever fails becomes one
// line on stderr, and profiling is off from then on.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kbench/profile.h"
#include "profile/embedded/profiler.h"
#include "profile/embedded/recording.h"
#include "profile/schedule.h"

namespace kbench::embedded {
namespace {

constexpr char variable[] = "KBENCH_PROFILE_SCHEDULE", default_path[] = "prof.schedule",
               folder_variable[] = "KBENCH_PROFILE_OUTPUT";

/// Never destroyed: threads may still call while the program ends.
struct State {
    std::mutex mutex;
    std::unique_ptr<Profiler> profiler;
    pid_t process = 0;  ///< that made it: a fork may use neither its GPU nor its file
};
State& state() {
    static State& the_state = *new State;
    return the_state;
}

void say(const std::string& line) { std::fprintf(stderr, "kbench: profile: %s\n", line.c_str()); }

void switch_off() { __atomic_store_n(&kbench_profile_state, 0, __ATOMIC_RELAXED); }

std::string read_schedule_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(path + ": " + std::strerror(errno));
    std::string text(longest_schedule + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad() || (file.gcount() == 0 && !file.eof())) throw std::runtime_error(path + ": it cannot be read");
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

/// Nothing where no schedule is there, or the variable names none.
std::unique_ptr<Profiler> make_profiler() {
    const char* const named = std::getenv(variable);
    const std::string path = named != nullptr ? named : default_path;
    if (path.empty() || (named == nullptr && !std::ifstream(path))) return nullptr;
    Schedule schedule = parse_schedule(read_schedule_file(path), path);
    if (const char* const folder = std::getenv(folder_variable); folder != nullptr && *folder != '\0')
        schedule.output = folder;
    std::unique_ptr<Driver> driver = load_driver();
    if (driver == nullptr) throw std::runtime_error("no CUDA driver is loaded (libcuda.so.1)");
    return std::make_unique<Profiler>(std::move(schedule), std::move(driver));
}

void write_result(Profiler& profiler) {
    switch_off();
    if (getpid() != state().process) return;
    profiler.finish();
    const std::string path = write_recording(profiler.recording(), profiler.schedule().output);
    say("wrote " + path);
}

template <class Call>
void guarded(const Call& call) noexcept {
    try {
        const std::lock_guard lock(state().mutex);
        if (__atomic_load_n(&kbench_profile_state, __ATOMIC_RELAXED) != 0) call(state().profiler);
    } catch (const std::exception& error) {
        switch_off();
        say(std::string(error.what()) + "; profiling is off");
    }
}

void write_at_exit() {
    guarded([](std::unique_ptr<Profiler>& profiler) {
        if (profiler) write_result(*profiler);
    });
}

/// Hands a call to the profiler, which the first one makes.
template <class Call>
void with_profiler(const Call& call) noexcept {
    guarded([&](std::unique_ptr<Profiler>& profiler) {
        if (!profiler) {
            profiler = make_profiler();
            if (!profiler) return switch_off();
            state().process = getpid();
            std::atexit(write_at_exit);
        }
        call(*profiler);
    });
}

/// The program ends as from main, but for what its other threads might still be doing to what exit() would destroy.
[[noreturn]] void stop() {
    std::fflush(nullptr);
    std::_Exit(0);
}

std::string_view named(const char* label) { return label == nullptr || *label == '\0' ? "unnamed" : label; }

}  // namespace
}  // namespace kbench::embedded

namespace embedded = kbench::embedded;

int kbench_profile_state = 1;  // until a first call has looked for a schedule

void kbench_profile_scope_begin(const char* label, kbench_stream stream) {
    embedded::with_profiler(
        [&](embedded::Profiler& profiler) { profiler.begin(embedded::named(label), static_cast<CUstream>(stream)); });
}

void kbench_profile_scope_end(const char* label, kbench_stream stream) {
    embedded::with_profiler(
        [&](embedded::Profiler& profiler) { profiler.end(embedded::named(label), static_cast<CUstream>(stream)); });
}

void kbench_profile_iteration(kbench_stream stream) {
    embedded::with_profiler([&](embedded::Profiler& profiler) {
        profiler.iteration(static_cast<CUstream>(stream));
        if (!profiler.is_finished()) return;
        embedded::write_result(profiler);
        if (!profiler.schedule().stops) return;
        embedded::say("the schedule says stop");
        embedded::stop();
    });
}

void kbench_profile_end(void) {
    embedded::with_profiler([&](embedded::Profiler& profiler) { embedded::write_result(profiler); });
}
