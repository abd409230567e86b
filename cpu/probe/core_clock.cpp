// A chain of adds, whose length in cycles is known, against the time.
#include "cpu/probe/core_clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kbench::cpu {

double core_clock_mhz() {
#if defined(__x86_64__)
    using Clock = std::chrono::steady_clock;
    constexpr int adds = 64, rounds = 2000;
    double least_s = 1;
    for (int attempt = 0; attempt < 3; ++attempt) {  // an interrupt can only make an attempt longer
        std::uint64_t sum = 0;
        const std::uint64_t one = 1;
        const auto start = Clock::now();
        // Adds of two registers, because some CPUs fold additions of constants before they execute anything.
        for (int round = 0; round < rounds; ++round)
            asm volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one));
        least_s = std::min(least_s, std::chrono::duration<double>(Clock::now() - start).count());
    }
    const double mhz = adds * rounds / least_s * 1e-6;
    return mhz > 400 && mhz < 8000 ? mhz : 0;
#else
    return 0;
#endif
}

}  // namespace kbench::cpu
