// The probes do the work that they are credited with: what they read, wrote and computed is checked against the host.
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "kernels/check.h"
#include "kernels/probe/cache.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/latency.h"
#include "kernels/probe/memory.h"
#include "kernels/probe/mma.h"
#include "kernels/probe/unit.h"
#include "kernels/probe/values.h"
#include "kernels/probe/wgmma.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using namespace cuda::probe;

constexpr std::uint32_t seed = 7;

/// Words of device memory between guards; every byte is 0xff until it is written.
class Words {
  public:
    explicit Words(std::int64_t count) : memory_(DeviceMatrix::poisoned(DataType::fp32, 1, count)) {}
    static Words zero(std::int64_t count) {
        Words words(count);
        KBENCH_CUDA(cudaMemset(words.data<void>(), 0, static_cast<std::size_t>(count) * 4));
        return words;
    }
    template <typename T>
    T* data() const {
        return static_cast<T*>(memory_.data());
    }
    template <typename T>
    std::vector<T> download() const {
        const std::vector<std::byte> bytes = memory_.download().bytes;
        std::vector<T> values(bytes.size() / sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }

  private:
    DeviceMatrix memory_;
};

std::uint32_t sum_of(const std::vector<std::uint32_t>& words) {
    return std::accumulate(words.begin(), words.end(), std::uint32_t{0});
}

/// What a write of `count` words leaves.
std::vector<std::uint32_t> written_words(std::uint32_t from_seed, std::int64_t count) {
    std::vector<std::uint32_t> words;
    for (std::int64_t i = 0; i < count; ++i)
        words.push_back(buffer_word(from_seed, static_cast<std::uint32_t>(i / 4), static_cast<int>(i % 4)));
    return words;
}

float as_float(std::uint32_t word) {
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

Words filled(std::uint32_t from_seed, std::int64_t count) {
    Words words(count);
    stream_memory(Traffic::write, {}, {words.data<void>(), nullptr, nullptr, count * 4, nullptr}, from_seed, 2, nullptr,
                  nullptr);
    return words;
}

class ProbeOnDevice : public ::testing::Test {
  protected:
    void SetUp() override { KBENCH_NEEDS_DEVICE(); }
};

TEST(ProbeValues, AreNeverZeroAndExactInEveryType) {
    int negative = 0;
    for (std::uint32_t i = 0; i < 10000; ++i) {
        const float value = operand(i % 7, i / 100, i % 100), magnitude = std::fabs(value);
        negative += value < 0;
        ASSERT_GE(magnitude, 1);
        ASSERT_LT(magnitude, 2);
        ASSERT_EQ(std::ldexp(magnitude, 7), std::floor(std::ldexp(magnitude, 7)));
        const float word = as_float(buffer_word(seed, i, static_cast<int>(i % 4)));
        ASSERT_GE(word, 1);
        ASSERT_LT(word, 2);
    }
    EXPECT_NEAR(negative, 5000, 300);
}

TEST(ProbeSpan, TellsTheClockOnlyWhereTheTimerCan) {
    EXPECT_DOUBLE_EQ((Span{1980 * 1000, 1000 * 1000}.mhz()), 1980);
    EXPECT_EQ((Span{1980, 1000}.mhz()), 0);
}

TEST_F(ProbeOnDevice, MemoryStreamsWriteCopyAddAndReadEveryWordInEveryVariant) {
    // A number of chunks that no grid divides.
    constexpr std::int64_t bytes = 37 * memory_chunk_bytes, count = bytes / 4;
    constexpr int multiprocessors = 2;
    const Words b = filled(seed, count), c = filled(seed + 1, count);
    const std::vector<std::uint32_t> b_words = written_words(seed, count), c_words = written_words(seed + 1, count);
    ASSERT_EQ(b.download<std::uint32_t>(), b_words);
    std::vector<std::uint32_t> triad_words;
    for (std::size_t i = 0; i < b_words.size(); ++i) {
        const float value = std::fma(triad_factor, as_float(c_words[i]), as_float(b_words[i]));
        std::memcpy(&triad_words.emplace_back(), &value, sizeof value);
    }
    for (const Hint hint : {Hint::none, Hint::no_allocate, Hint::streaming})
        for (const int loads : {1, 2, 4, 8})
            for (const int blocks_per_sm : {0, 2, 16}) {
                SCOPED_TRACE(testing::Message() << hint_names[static_cast<int>(hint)] << ", " << loads
                                                << " in flight, blocks an SM " << blocks_per_sm);
                const auto run = [&](Traffic traffic, const Words& a, std::uint32_t* sums) {
                    stream_memory(traffic, {loads, blocks_per_sm, hint},
                                  {a.data<void>(), b.data<void>(), c.data<void>(), bytes, sums}, seed + 2,
                                  multiprocessors, nullptr, nullptr);
                };
                const Words written(count), copied(count), added(count), sums = Words::zero(memory_sums);
                run(Traffic::write, written, nullptr);
                run(Traffic::copy, copied, nullptr);
                run(Traffic::triad, added, nullptr);
                run(Traffic::read, added, sums.data<std::uint32_t>());
                ASSERT_EQ(written.download<std::uint32_t>(), written_words(seed + 2, count));
                ASSERT_EQ(copied.download<std::uint32_t>(), b_words);
                ASSERT_EQ(added.download<std::uint32_t>(), triad_words);
                ASSERT_EQ(sum_of(sums.download<std::uint32_t>()), sum_of(b_words));
            }
}

TEST_F(ProbeOnDevice, L2ReadsEveryChunkAsOftenAsItSays) {
    constexpr std::int64_t count = 5 * memory_chunk_bytes / 4;
    const Words data = filled(seed, count);
    const std::vector<std::uint32_t> words = written_words(seed, count);
    for (const int loads : {2, 4, 8})
        for (const int blocks : {1, 3, 64}) {
            constexpr int steps = 7;
            const Words sums = Words::zero(memory_sums);
            read_l2(data.data<void>(), count * 4, loads, blocks, steps, sums.data<std::uint32_t>(), nullptr, nullptr);
            const std::int64_t chunk_words = l2_chunk_bytes(loads) / 4, chunks = count / chunk_words;
            std::uint32_t expected = 0;
            for (std::int64_t visit = 0; visit < blocks * steps; ++visit)
                for (std::int64_t i = 0; i < chunk_words; ++i)
                    expected += words[static_cast<std::size_t>(visit % chunks * chunk_words + i)];
            EXPECT_EQ(sum_of(sums.download<std::uint32_t>()), expected) << loads << " in flight, blocks " << blocks;
        }
}

TEST_F(ProbeOnDevice, NearMemoryIsReadInEveryPass) {
    constexpr int blocks = 5, passes = 11;
    const std::int64_t count = memory_chunk_bytes / 4;
    const Words data = filled(seed, count);
    for (const NearMemory memory : {NearMemory::l1, NearMemory::shared})
        for (const int width : {4, 8, 16}) {
            const Words sums = Words::zero(memory_sums);
            read_near(memory, data.data<void>(), width, blocks, passes, sums.data<std::uint32_t>(), nullptr, nullptr);
            EXPECT_EQ(sum_of(sums.download<std::uint32_t>()),
                      blocks * passes * sum_of(written_words(seed, near_bytes(width) / 4)))
                << (memory == NearMemory::l1 ? "L1" : "shared memory") << ", loads of " << width << " bytes";
        }
}

/// One thread's sum as fma_chains() describes it. `multiply_add` and `add` round as the type does.
template <typename T>
T chains_on_host(unsigned thread, std::uint32_t half, int chains, int steps, double decay,
                 const std::function<T(T, T, T)>& multiply_add, const std::function<T(T, T)>& add) {
    const T m = static_cast<T>(-1 + (1 + thread % 2) * decay), c = operand(thread, 2, 0);
    T sum = 0;
    for (int k = 0; k < chains; ++k) {
        T x = operand(thread, half, static_cast<std::uint32_t>(k));
        for (int s = 0; s < steps; ++s) x = multiply_add(x, m, c);
        sum = k == 0 ? x : add(sum, x);
    }
    return sum;
}

template <typename T>
T fused(T x, T m, T c) {
    return std::fma(x, m, c);
}
template <typename T>
T plus(T a, T b) {
    return a + b;
}

/// fp16 in double: an fp16 product and its sum are exact there, so that only the last step rounds.
double round_to_half(double value) { return __half2float(__double2half(value)); }
double fused_half(double x, double m, double c) { return round_to_half(x * m + c); }
double plus_half(double a, double b) { return round_to_half(a + b); }

TEST_F(ProbeOnDevice, PlainChainsHaveTheBitsOfTheHost) {
    constexpr int blocks = 2, iterations = 3, threads = blocks * fma_threads, steps = iterations * fma_steps;
    for (const int chains : {4, 8, 16}) {
        SCOPED_TRACE(chains);
        const Words single(threads), twice(threads * 2), halves(threads);
        fma_chains(DataType::fp32, chains, blocks, iterations, single.data<void>(), nullptr, nullptr);
        fma_chains(DataType::fp64, chains, blocks, iterations, twice.data<void>(), nullptr, nullptr);
        fma_chains(DataType::fp16, chains, blocks, iterations, halves.data<void>(), nullptr, nullptr);
        const auto fp32 = single.download<float>();
        const auto fp64 = twice.download<double>();
        const auto fp16 = halves.download<__half>();
        for (unsigned t = 0; t < threads; ++t) {
            ASSERT_EQ(fp32[t],
                      chains_on_host<float>(t, 0, chains, steps, fma_decay(DataType::fp32), fused<float>, plus<float>))
                << "fp32, thread " << t;
            ASSERT_EQ(fp64[t], chains_on_host<double>(t, 0, chains, steps, fma_decay(DataType::fp64), fused<double>,
                                                      plus<double>))
                << "fp64, thread " << t;
            for (std::uint32_t half = 0; half < 2; ++half)
                ASSERT_EQ(
                    __half2float(fp16[2 * t + half]),
                    chains_on_host<double>(t, half, chains, steps, fma_decay(DataType::fp16), fused_half, plus_half))
                    << "fp16, thread " << t;
        }
    }
}

TEST_F(ProbeOnDevice, PowersComeToRestAndShufflesToTheirLanes) {
    // Two exchanges of lanes by the same bit are none, so that these values tell parities alone: that instructions are
    // as many as they say is for counters (tests/truths) and for the clock (tests/profile/ceilings_test.cpp) to tell.
    constexpr int blocks = 2, threads = blocks * unit_threads;
    ASSERT_NEAR(std::exp2(-power_at_rest), power_at_rest, 1e-9);
    for (const int iterations : {1, 2, 3})
        for (const int chains : {2, 4, 8}) {
            SCOPED_TRACE(testing::Message() << iterations << " iterations of " << chains << " chains");
            const Words powers(threads), shuffled(threads);
            power_chains(chains, blocks, iterations, powers.data<float>(), nullptr, nullptr);
            shuffle_chains(chains, blocks, iterations, shuffled.data<std::uint32_t>(), nullptr, nullptr);
            const auto sums = powers.download<float>();
            const auto words = shuffled.download<std::uint32_t>();
            unsigned lanes = 0;
            for (int step = 0; step < iterations * unit_steps; ++step)
                lanes ^= static_cast<unsigned>(shuffle_mask(step % unit_steps));
            for (unsigned t = 0; t < threads; ++t) {
                std::uint32_t taken = 0;
                for (int k = 0; k < chains; ++k) taken += scramble(t ^ lanes) + static_cast<std::uint32_t>(k);
                ASSERT_NEAR(sums[t], chains * power_at_rest, 1e-5 * chains) << "thread " << t;
                ASSERT_EQ(words[t], taken) << "thread " << t;
            }
        }
}

TEST_F(ProbeOnDevice, PlainChainsMoveToTheEndOfALaunch) {
    // More steps than a launch of the measurement has: values that came to rest would say little.
    constexpr int iterations = 6000;
    for (const DataType type : {DataType::fp32, DataType::fp64}) {
        const std::int64_t words = fma_threads * fma_result_bytes(type) / 4;
        const Words before(words), after(words);
        fma_chains(type, 4, 1, iterations, before.data<void>(), nullptr, nullptr);
        fma_chains(type, 4, 1, iterations + 1, after.data<void>(), nullptr, nullptr);
        const auto a = before.download<std::uint32_t>(), b = after.download<std::uint32_t>();
        std::int64_t same = 0;
        for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
        EXPECT_LT(same, type == DataType::fp32 ? words / 10 : words * 6 / 10) << name(type);
    }
}

/// The dot product of two operands' rows, and of their magnitudes.
struct Dot {
    double value = 0, magnitude = 0;
    void add(std::uint32_t a, int row, std::uint32_t b, int column, int depth) {
        for (int k = 0; k < depth; ++k) {
            const double product = double{operand(a, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(k))} *
                                   operand(b, static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(k));
            value += product;
            magnitude += std::fabs(product);
        }
    }
};

/// `dot` was added `products` times; sums are exact but for the alignment inside the tensor cores.
void expect_sum(double computed, const Dot& dot, int products) {
    EXPECT_NEAR(computed, dot.value * products, 1e-5 * dot.magnitude * products);
}

template <typename T>
void check_mma(Mma mma) {
    constexpr int blocks = 2, iterations = 3, threads = blocks * mma_threads;
    const MmaShape& shape = shape_of(mma);
    for (const int tiles : {4, 8}) {
        const Words out(threads * static_cast<int>(sizeof(T)) / 4);
        mma_chains(mma, tiles, blocks, iterations, out.data<void>(), nullptr, nullptr);
        const std::vector<T> sums = out.download<T>();
        for (unsigned thread = 0; thread < threads && !testing::Test::HasFailure(); ++thread) {
            SCOPED_TRACE(testing::Message() << tiles << " tiles, thread " << thread);
            const std::uint32_t warp = thread / 32;
            const int g = static_cast<int>(thread % 32 / 4), t = static_cast<int>(thread % 4);
            Dot dot;
            for (int row = g; row < shape.m; row += 8)
                for (int tile = 0; tile < tiles; ++tile)
                    for (const int column : {2 * t, 2 * t + 1})
                        dot.add(2 * warp, row, 2 * warp + 1, tile * shape.n + column, shape.k);
            expect_sum(sums[thread], dot, iterations * mma_turns);
        }
    }
}

TEST_F(ProbeOnDevice, MmaAddsTheProductsOfItsOperands) {
    for (const Mma mma : {Mma::fp16_16x8x16, Mma::bf16_16x8x16, Mma::tf32_16x8x8}) {
        SCOPED_TRACE(static_cast<int>(mma));
        ASSERT_STREQ(mma_unsupported(mma), "");
        check_mma<float>(mma);
    }
    for (const Mma mma : {Mma::fp64_8x8x4, Mma::fp64_16x8x16}) {
        SCOPED_TRACE(static_cast<int>(mma));
        if (*mma_unsupported(mma) == '\0') check_mma<double>(mma);
    }
}

TEST_F(ProbeOnDevice, WgmmaAddsTheProductsOfItsOperands) {
    cudaDeviceProp properties{};
    KBENCH_CUDA(cudaGetDeviceProperties(&properties, 0));
    if (properties.major != 9 || properties.minor != 0)
        GTEST_SKIP() << "wgmma needs compute capability 9.0, this is " << properties.major << "." << properties.minor;
    constexpr int blocks = 2, iterations = 3;
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::tf32})
        for (int warpgroups = 1; warpgroups <= wgmma_max_warpgroups; ++warpgroups) {
            const int threads = warpgroups * 128;
            const Words out(blocks * threads);
            wgmma_chains(precision, warpgroups, blocks, iterations, out.data<float>(), nullptr, nullptr);
            const std::vector<float> sums = out.download<float>();
            for (int i = 0; i < blocks * threads && !HasFailure(); ++i) {
                SCOPED_TRACE(testing::Message()
                             << name(precision) << ", warpgroups " << warpgroups << ", thread " << i);
                const int block = i / threads, thread = i % 128, warp = thread / 32, lane = thread % 32;
                const std::uint32_t a = wgmma_matrix_a(block, i % threads / 128), b = wgmma_matrix_b(block);
                Dot dot;
                for (const int row : {warp * 16 + lane / 4, warp * 16 + lane / 4 + 8})
                    for (int column = lane % 4 * 2; column < wgmma_n; column += 8)
                        for (const int neighbour : {column, column + 1})
                            dot.add(a, row, b, neighbour, wgmma_depth(precision));
                expect_sum(sums[static_cast<std::size_t>(i)], dot, iterations * wgmma_turns);
            }
        }
}

TEST_F(ProbeOnDevice, NoBlockLeavesABarrierBeforeAllHaveCome) {
    int blocks = 0;
    KBENCH_CUDA(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
    constexpr int barriers = 300;
    const Words state(2), rounds = Words::zero(blocks);
    grid_barriers(blocks, barriers, state.data<BarrierState>(), rounds.data<std::uint32_t>(), nullptr);
    const auto values = state.download<std::uint32_t>();
    EXPECT_EQ(values[0], static_cast<std::uint32_t>(blocks * barriers));
    EXPECT_EQ(values[1], 0u);
    for (const std::uint32_t round : rounds.download<std::uint32_t>()) EXPECT_EQ(round, barriers);
}

TEST_F(ProbeOnDevice, SpanHoldsTheClockOfTheKernel) {
    int most_khz = 0;
    KBENCH_CUDA(cudaDeviceGetAttribute(&most_khz, cudaDevAttrClockRate, 0));
    const Words span = Words::zero(4), out(fma_threads);
    fma_chains(DataType::fp32, 8, 1, 10000, out.data<void>(), span.data<Span>(), nullptr);
    const double mhz = span.download<Span>().front().mhz();
    EXPECT_GT(mhz, 200);
    EXPECT_LT(mhz, most_khz * 1e-3 * 1.02);
}

}  // namespace
}  // namespace kbench::test
