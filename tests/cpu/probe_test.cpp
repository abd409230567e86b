// The loops behind the CPU's ceilings do all the work that they claim, and what they give is plausible.
#include "cpu/probe/probe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <omp.h>

#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "analysis/machine/ceilings.h"
#include "cpu/probe/chains.h"
#include "cpu/probe/core_clock.h"
#include "cpu/probe/on_threads.h"
#include "cpu/probe/streams.h"

namespace kbench::cpu {
namespace {

using testing::HasSubstr;

/// What one round adds up to or multiplies with, element by element, in scalar arithmetic.
double next(const Chain& chain, int element, double x, const std::vector<double>& a, const std::vector<double>& b) {
    const int lane = element % chain.lanes;
    const auto at = [](const std::vector<double>& values, int i) { return values[static_cast<std::size_t>(i)]; };
    switch (chain.kind) {
        case ChainKind::fma: return std::fma(x, at(a, lane), at(b, lane));
        case ChainKind::dot: return x + at(a, 2 * lane) * at(b, 2 * lane) + at(a, 2 * lane + 1) * at(b, 2 * lane + 1);
        case ChainKind::tile:
            for (int k = 0; k < 32; ++k) x += at(a, lane / 16 * 32 + k) * at(b, k * 16 + lane % 16);
            return x;
    }
    return x;
}

class EveryChain : public testing::TestWithParam<int> {
  protected:
    const Chain& chain_ = chains()[static_cast<std::size_t>(GetParam())];
};

// Small whole numbers are exact in every type here, fp16 up to 2048, so that each round counts and nothing rounds.
TEST_P(EveryChain, GivesWhatAScalarRecurrenceGives) {
    if (const std::string why = chain_.unavailable(); !why.empty()) GTEST_SKIP() << why;
    std::mt19937 random(7);
    const auto whole = [&random](int low, int high) {
        return static_cast<double>(std::uniform_int_distribution<int>(low, high)(random));
    };
    std::vector<double> a, b, start, end(static_cast<std::size_t>(chain_.elements()), -1);
    for (int i = 0; i < chain_.operands; ++i) {
        a.push_back(chain_.kind == ChainKind::fma ? (i % 2 == 0 ? 1 : -1) : whole(-3, 3));
        b.push_back(whole(1, 3));
    }
    for (int i = 0; i < chain_.elements(); ++i) start.push_back(whole(-9, 9));
    for (const int rounds : {0, 1, 2, 301}) {
        chain_.run(rounds, a.data(), b.data(), start.data(), end.data());
        for (int i = 0; i < chain_.elements(); ++i) {
            double x = start[static_cast<std::size_t>(i)];
            for (int round = 0; round < rounds; ++round) x = next(chain_, i, x, a, b);
            ASSERT_EQ(end[static_cast<std::size_t>(i)], x) << "element " << i << " after " << rounds << " rounds";
        }
    }
}

TEST_P(EveryChain, TakesLongerForMoreRounds) {
    if (const std::string why = chain_.unavailable(); !why.empty()) GTEST_SKIP() << why;
    const std::vector<double> a(static_cast<std::size_t>(chain_.operands), 1), b = a;
    std::vector<double> x(static_cast<std::size_t>(chain_.elements()), 0);
    const auto least_s = [&](std::int64_t rounds) {
        double least = 1e9;
        for (int run = 0; run < 9; ++run)
            least = std::min(
                least, seconds_on_threads(1, [&](int) { chain_.run(rounds, a.data(), b.data(), x.data(), x.data()); }));
        return least;
    };
    double ratio = 0;  // other load may lengthen all of the short ones
    for (int again = 0; again < 5 && ratio <= 5; ++again) ratio = least_s(1'000'000) / least_s(100'000);
    EXPECT_GT(ratio, 5);
}

std::string chain_name(const testing::TestParamInfo<int>& test) {
    return std::string(chains()[static_cast<std::size_t>(test.param)].ceiling);
}
INSTANTIATE_TEST_SUITE_P(Isa, EveryChain, testing::Range(0, static_cast<int>(chains().size())), chain_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryChain);  // other CPUs than x86-64 have none

TEST(Chains, CountTwoFlopsForEachMultiplyAdd) {
    std::map<std::string_view, double> flops;
    for (const Chain& chain : chains()) flops[chain.ceiling] = chain.flops_a_round() / chain.registers;
    if (flops.empty()) GTEST_SKIP() << "no chains on this CPU";
    EXPECT_EQ(flops["avx2_fp32"], 16);
    EXPECT_EQ(flops["avx2_fp64"], 8);
    EXPECT_EQ(flops["avx512_fp32"], 32);
    EXPECT_EQ(flops["avx512_fp64"], 16);
    EXPECT_EQ(flops["avx512_fp16"], 64);
    EXPECT_EQ(flops["avx512_bf16"], 64);
    EXPECT_EQ(flops["amx_bf16"], 16 * 16 * 32 * 2);
}

TEST(Streams, MoveEveryElementOnceWhateverTheThreadsAndInstructions) {
    if (const std::string why = Streams::unavailable(); !why.empty()) GTEST_SKIP() << why;
    for (int run = 0; run < 9; ++run) {
        const int threads = 1 + run % 3;
        const auto isa = static_cast<VectorIsa>(run / 3);
        if (isa > vector_isa()) break;
        Streams streams(3 * 8 * 10'000, threads, isa);
        ASSERT_EQ(streams.elements(), 10'000 / 64 * 64);
        on_threads(threads, [&](int thread) { streams.triad(thread, 3); });
        double a = 0, b = 0, c = 0;
        for (std::int64_t i = 0; i < streams.elements(); ++i) {
            ASSERT_EQ(streams.a()[i], streams.b()[i] + 3 * streams.c()[i]) << i;
            ASSERT_EQ(streams.b()[i], i % 7) << i;
            a += streams.a()[i];
            b += streams.b()[i];
            c += streams.c()[i];
        }
        double sum = 0;
        for (int thread = 0; thread < threads; ++thread) sum += streams.read(thread);
        EXPECT_EQ(sum, a + b + c) << threads << " threads";
        EXPECT_EQ(streams.triad_bytes(), 3.0 * 8 * static_cast<double>(streams.elements()));
    }
}

TEST(Streams, AreFarLargerThanTheCachesAndNeverTakeAllMemory) {
    const std::int64_t mb = 1'000'000;
    EXPECT_EQ(stream_bytes(50 * mb, 64'000 * mb), 600 * mb) << "each array four times the cache";
    EXPECT_EQ(stream_bytes(0, 64'000 * mb), 256 * mb) << "a cache that the system does not tell";
    EXPECT_EQ(stream_bytes(1152 * mb, 640'000 * mb), 4000 * mb);
    EXPECT_EQ(stream_bytes(50 * mb, 1000 * mb), 250 * mb);
}

TEST(CoreClock, IsPlausible) {
#if !defined(__x86_64__)
    GTEST_SKIP() << "read on x86-64 only";
#endif
    EXPECT_GT(core_clock_mhz(), 400);
    EXPECT_LT(core_clock_mhz(), 8000);
}

TEST(RoofReader, RunsEveryProbeThatThisCpuHas) {
    if (const std::string why = Streams::unavailable(); !why.empty()) GTEST_SKIP() << why;
    const RoofReader reader({"cpu_dram_read", "no ceiling", "cpu_dram_triad", "avx2_fp32"}, std::int64_t{1} << 31);
    EXPECT_THAT(reader.names(), testing::ElementsAre("cpu_dram_read", "cpu_dram_triad", "avx2_fp32"));
    for (int again = 0; again < 2; ++again) {
        const std::vector<double> values = reader.read();
        ASSERT_EQ(values.size(), 3u);
        for (const double value : values) EXPECT_GT(value, 0);
        EXPECT_LT(values[2], 100) << "TFLOP/s";
    }
}

TEST(MeasureCeilings, GivesEveryKindOnceMeasuredOrWithAReason) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Ceiling> ceilings = measure_ceilings(0.2, std::int64_t{1} << 30);
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 20);
    std::size_t i = 0;
    for (const CeilingKind& kind : ceiling_kinds()) {
        if (kind.backend != "cpu" || !kind.is_measured) continue;
        ASSERT_LT(i, ceilings.size());
        const Ceiling& ceiling = ceilings[i++];
        EXPECT_EQ(ceiling.name, kind.name);
        EXPECT_FALSE(ceiling.datasheet.value);
        if (!ceiling.value.value) {
            EXPECT_THAT(ceiling.value.reason, testing::Not(testing::IsEmpty())) << ceiling.name;
            continue;
        }
        EXPECT_EQ(ceiling.value.origin, Origin::measured);
        EXPECT_GT(*ceiling.value.value, 0) << ceiling.name;
        EXPECT_LE(ceiling.low, *ceiling.value.value) << ceiling.name;
        EXPECT_GE(ceiling.high, *ceiling.value.value) << ceiling.name;
    }
    EXPECT_EQ(i, ceilings.size());
}

// A third of an FMA a cycle at the least, four at the most, in the lanes that the instruction has: no loop that
// executes its chains is so slow, and one that was optimised away is faster. Other tests share the cores and may slow
// the loop or the reading of the clock, so one measurement out of five must be plausible; a wrong loop never is.
TEST(MeasureCeilings, OneCoreComputesWhatItsClockAllows) {
    std::string implausible;
    for (int attempt = 0; attempt < 5; ++attempt) {
        implausible.clear();
        for (const Ceiling& ceiling : measure_ceilings(0.2, std::int64_t{1} << 30)) {
            if (!ceiling.name.starts_with("avx") || !ceiling.name.ends_with("fp32_one_core") || !ceiling.value.value ||
                ceiling.clock_mhz == 0)
                continue;
            const double lanes = ceiling.name.starts_with("avx512") ? 16 : 8;
            const double fmas_a_cycle = *ceiling.value.value * 1e12 / (2 * lanes) / (ceiling.clock_mhz * 1e6);
            if (fmas_a_cycle < 0.3 || fmas_a_cycle > 4.5)
                implausible += fmt::format("{}: {:.2f} FMAs a cycle at {:.0f} MHz\n", ceiling.name, fmas_a_cycle,
                                           ceiling.clock_mhz);
        }
        if (implausible.empty()) return;
    }
    FAIL() << implausible;
}

}  // namespace
}  // namespace kbench::cpu
