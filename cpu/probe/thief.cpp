// The threads' loops, and how they are told what to do next.
#include "cpu/probe/thief.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "cpu/threads.h"
#include "kbench/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kbench::cpu {
namespace {

/// Stores pass the caches, so that the buffer need not be larger than these; it is for the memory's pages to change.
constexpr std::size_t buffer_bytes = std::size_t{8} << 20, huge_page_bytes = std::size_t{2} << 20;
/// Between two looks at the clock and at the order: 64 KiB take some 10 us.
constexpr std::size_t chunk_doubles = (std::size_t{64} << 10) / sizeof(double);
constexpr int rounds_of_chunk = 2000;
constexpr double most_behind_ns = 1e6;
/// How long a thread may take to come to a new order.
constexpr std::chrono::milliseconds longest_begin{500};

#if defined(__x86_64__)

void store_past_caches(double* to, std::size_t count) {
    const __m128d value = _mm_set1_pd(1.5);
    for (std::size_t i = 0; i < count; i += 8) {
        _mm_stream_pd(to + i, value);
        _mm_stream_pd(to + i + 2, value);
        _mm_stream_pd(to + i + 4, value);
        _mm_stream_pd(to + i + 6, value);
    }
    _mm_sfence();
}

/// Eight chains keep the units busy, and none of them touches the memory.
void compute_in_registers() {
    constexpr int chains = 8;
    __m128d x[chains];
    for (int i = 0; i < chains; ++i) x[i] = _mm_set1_pd(1 + i);
    const __m128d a = _mm_set1_pd(-1), b = _mm_set1_pd(1.5);
    for (int round = 0; round < rounds_of_chunk; ++round)
        for (__m128d& value : x) {
            value = _mm_add_pd(_mm_mul_pd(value, a), b);
            asm volatile("" : "+x"(value));
        }
}

void rest() { _mm_pause(); }

#else

void store_past_caches(double*, std::size_t) {}
void compute_in_registers() {}
void rest() {}

#endif

struct FreeMemory {
    void operator()(double* memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<double[], FreeMemory>;

/// Memory that is near the calling thread.
Buffer near_buffer() {
    void* memory = std::aligned_alloc(huge_page_bytes, buffer_bytes);
    if (memory == nullptr) return nullptr;
    madvise(memory, buffer_bytes, MADV_HUGEPAGE);
    Buffer buffer(static_cast<double*>(memory));
    std::fill_n(buffer.get(), buffer_bytes / sizeof(double), 0.0);
    return buffer;
}

}  // namespace

std::string ThiefThreads::unavailable() {
#if defined(__x86_64__)
    return {};
#else
    return "kbench has loops for x86-64 only";
#endif
}

ThiefThreads::ThiefThreads(const std::vector<int>& cpus) : members_(cpus.size()) {
    if (std::string why = unavailable(); !why.empty()) throw DeviceError("no thief: " + why);
    try {
        for (std::size_t i = 0; i < cpus.size(); ++i)
            members_[i].thread = std::thread([this, i, cpu = cpus[i]] { run(members_[i], cpu); });
        start(Theft::nothing, 0, {});
    } catch (const std::system_error& error) {
        end_all();
        throw DeviceError(std::string("the system starts no threads for a thief: ") + error.what());
    } catch (...) {
        end_all();
        throw;
    }
    if (std::ranges::all_of(members_, &Member::pinned)) return;
    end_all();
    throw DeviceError("the system does not let a thief stay on cores of its own");
}

ThiefThreads::~ThiefThreads() { end_all(); }

void ThiefThreads::end_all() {
    ends_ = true;
    ++order_;
    order_.notify_all();
    for (Member& member : members_)
        if (member.thread.joinable()) member.thread.join();
}

void ThiefThreads::start(Theft what, double bytes_per_s, std::chrono::nanoseconds longest) {
    what_ = what;
    bytes_per_ns_ = bytes_per_s * 1e-9 / static_cast<double>(members_.size());
    end_ = Clock::now() + longest;
    const unsigned order = ++order_;
    order_.notify_all();
    wait_until_begun(order);
}

double ThiefThreads::bytes() const {
    double all = 0;
    for (const Member& member : members_) all += static_cast<double>(member.bytes.load());
    return all;
}

void ThiefThreads::wait_until_begun(unsigned order) {
    const auto end = Clock::now() + longest_begin;
    for (const Member& member : members_)
        while (member.begun.load() != order) {
            if (Clock::now() > end) throw DeviceError("a thief found no time on its core, which other work has");
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
}

bool ThiefThreads::is_current(unsigned order) const {
    return order_.load(std::memory_order_relaxed) == order && is_running();
}

void ThiefThreads::run(Member& member, int cpu) {
    member.pinned = pin_this_thread(cpu);
    const Buffer buffer = near_buffer();
    member.pinned = member.pinned && buffer != nullptr;
    for (unsigned followed = 0; !ends_.load();) {
        order_.wait(followed);
        if (ends_.load()) return;
        followed = order_.load();
        member.begun = followed;
        if (member.pinned) follow(member, followed, buffer.get());
    }
}

void ThiefThreads::follow(Member& member, unsigned order, double* buffer) {
    const Theft what = what_.load();
    if (what == Theft::nothing) return;
    const double bytes_per_ns = bytes_per_ns_.load();
    const auto begin = Clock::now();
    double stored = 0;
    for (std::size_t at = 0; is_current(order);) {
        if (what == Theft::compute) {
            compute_in_registers();
            continue;
        }
        const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
        if (bytes_per_ns > 0 && stored > bytes_per_ns * ns) {
            rest();
            continue;
        }
        // What it lost while others had its core it does not catch up with: it would take more than its share.
        stored = std::max(stored, bytes_per_ns * (ns - most_behind_ns));
        store_past_caches(buffer + at, chunk_doubles);
        at = (at + chunk_doubles) % (buffer_bytes / sizeof(double));
        stored += chunk_doubles * sizeof(double);
        member.bytes += static_cast<std::int64_t>(chunk_doubles * sizeof(double));
    }
}

double stored_bytes_per_s(const std::vector<int>& cpus, double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr int looks = 5;
    const std::chrono::duration<double> look(seconds / looks);
    ThiefThreads threads(cpus);
    threads.start(Theft::stores, 0, std::chrono::duration_cast<std::chrono::nanoseconds>(2 * looks * look));
    double highest = 0;
    for (int i = 0; i < looks; ++i) {
        const double before = threads.bytes();
        const auto begin = Clock::now();
        std::this_thread::sleep_for(look);
        const double s = std::chrono::duration<double>(Clock::now() - begin).count();
        highest = std::max(highest, (threads.bytes() - before) / s);
    }
    return highest;
}

}  // namespace kbench::cpu
