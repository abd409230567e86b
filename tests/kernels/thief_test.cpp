// The thief takes what it was told to, tells what it took, and comes to its end when asked and by itself.
#include "kernels/probe/thief.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "kbench/error.h"
#include "kernels/check.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using namespace cuda::probe;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int blocks = 8;  // an SM each
constexpr std::int64_t second_ns = 1'000'000'000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class ThiefOnDevice : public ::testing::Test {
  protected:
    void SetUp() override {
        KBENCH_NEEDS_DEVICE();
        KBENCH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        KBENCH_CUDA(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
        KBENCH_CUDA(cudaMalloc(&counts_, blocks * sizeof(ThiefCount)));
        KBENCH_CUDA(cudaMalloc(&stop_, sizeof(unsigned)));
        int l2_bytes = 0;
        KBENCH_CUDA(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0));
        bytes_ = 8 * std::int64_t{l2_bytes} / thief_chunk_bytes * thief_chunk_bytes;
        small_bytes_ = std::int64_t{l2_bytes} / 8 / thief_chunk_bytes * thief_chunk_bytes;
        KBENCH_CUDA(cudaMalloc(&data_, static_cast<std::size_t>(bytes_)));
        KBENCH_CUDA(cudaMemset(data_, 0x3f, static_cast<std::size_t>(bytes_)));
        KBENCH_CUDA(cudaMalloc(&sums_, thief_sums * sizeof(std::uint32_t)));
        KBENCH_CUDA(cudaMemset(sums_, 0, thief_sums * sizeof(std::uint32_t)));
        KBENCH_CUDA(cudaDeviceSynchronize());  // a stream of its own does not wait for that
        load_thief();
    }
    void TearDown() override {
        if (stream_ == nullptr) return;
        write_stop(1);
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
        cudaStreamDestroy(copies_);
        cudaFree(data_);
        cudaFree(sums_);
        cudaFree(counts_);
        cudaFree(stop_);
    }

    ThiefTask task(Theft theft, double bytes_per_ns, std::int64_t deadline_ns = second_ns) {
        KBENCH_CUDA(cudaMemsetAsync(counts_, 0, blocks * sizeof(ThiefCount), copies_));
        write_stop(0);
        return {.theft = theft,
                .blocks = blocks,
                .data = data_,
                .bytes = theft == Theft::l2 ? small_bytes_ : bytes_,
                .bytes_per_ns = bytes_per_ns,
                .deadline_ns = deadline_ns,
                .stop = stop_,
                .counts = counts_,
                .sums = sums_};
    }

    void write_stop(unsigned value) {
        KBENCH_CUDA(cudaMemcpyAsync(stop_, &value, sizeof(value), cudaMemcpyHostToDevice, copies_));
        KBENCH_CUDA(cudaStreamSynchronize(copies_));
    }
    void stop() {
        write_stop(1);
        KBENCH_CUDA(cudaStreamSynchronize(stream_));
    }

    ThiefCount total() const {
        std::array<ThiefCount, blocks> counts;
        KBENCH_CUDA(cudaMemcpyAsync(counts.data(), counts_, sizeof(counts), cudaMemcpyDeviceToHost, copies_));
        KBENCH_CUDA(cudaStreamSynchronize(copies_));
        ThiefCount all;
        for (const ThiefCount& block : counts) {
            all.bytes += block.bytes;
            all.ns += block.ns;
        }
        all.ns /= blocks;
        return all;
    }
    /// What it tells of a part of its time, while it runs.
    double rate_for(milliseconds time) const {
        const ThiefCount before = total();
        std::this_thread::sleep_for(time);
        const ThiefCount after = total();
        return static_cast<double>(after.bytes - before.bytes) / static_cast<double>(after.ns - before.ns);
    }
    bool is_running() const {
        const bool runs = cudaStreamQuery(stream_) == cudaErrorNotReady;
        cudaGetLastError();
        return runs;
    }

    cudaStream_t stream_ = nullptr, copies_ = nullptr;
    ThiefCount* counts_ = nullptr;
    unsigned* stop_ = nullptr;
    std::int64_t bytes_ = 0, small_bytes_ = 0;
    void* data_ = nullptr;
    std::uint32_t* sums_ = nullptr;
};

TEST_F(ThiefOnDevice, TakesWhatItIsToldWithinATenth) {
    for (const Theft theft : {Theft::dram, Theft::l2})
        for (const double bytes_per_ns : {20.0, 100.0, 200.0}) {  // 8 SMs can take 60 each
            run_thief(task(theft, bytes_per_ns), stream_);
            std::this_thread::sleep_for(milliseconds(20));
            EXPECT_NEAR(rate_for(milliseconds(100)) / bytes_per_ns, 1, 0.1) << bytes_per_ns << " bytes a ns";
            ASSERT_TRUE(is_running());
            stop();
        }
}

TEST_F(ThiefOnDevice, TakesMoreWithoutAPaceAndNothingWhereItComputes) {
    run_thief(task(Theft::l2, 0), stream_);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_GT(rate_for(milliseconds(50)), 300) << "8 SMs of L2's bandwidth";
    stop();
    run_thief(task(Theft::compute, 0), stream_);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(total().bytes, 0u);
    EXPECT_GT(total().ns, 1'000'000u) << "it runs";
}

/// What it tells is what events say that it took in all.
TEST_F(ThiefOnDevice, CountsEveryByteOfItsTime) {
    cudaEvent_t begin = nullptr, end = nullptr;
    KBENCH_CUDA(cudaEventCreate(&begin));
    KBENCH_CUDA(cudaEventCreate(&end));
    KBENCH_CUDA(cudaEventRecord(begin, stream_));
    run_thief(task(Theft::dram, 100, second_ns / 10), stream_);
    KBENCH_CUDA(cudaEventRecord(end, stream_));
    KBENCH_CUDA(cudaStreamSynchronize(stream_));
    float ms = 0;
    KBENCH_CUDA(cudaEventElapsedTime(&ms, begin, end));
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    EXPECT_NEAR(static_cast<double>(total().bytes) / (ms * 1e6), 100, 10);
}

TEST_F(ThiefOnDevice, StopsWhenItIsAskedTo) {
    for (const Theft theft : {Theft::nothing, Theft::compute, Theft::dram, Theft::l2}) {
        run_thief(task(theft, 100), stream_);
        std::this_thread::sleep_for(milliseconds(20));
        ASSERT_TRUE(is_running());
        const Clock::time_point asked = Clock::now();
        stop();
        EXPECT_LT(seconds_since(asked), 0.05);
    }
}

TEST_F(ThiefOnDevice, StopsAtItsDeadlineWhoeverForgetsIt) {
    for (const Theft theft : {Theft::nothing, Theft::compute, Theft::dram, Theft::l2}) {
        const Clock::time_point start = Clock::now();
        run_thief(task(theft, 1e-3, second_ns / 5), stream_);  // a pace at which no second chunk comes in time
        KBENCH_CUDA(cudaStreamSynchronize(stream_));
        EXPECT_NEAR(seconds_since(start), 0.2, 0.05);
    }
}

TEST_F(ThiefOnDevice, RefusesWhatCouldHangOrReadBesideItsBuffer) {
    EXPECT_THROW(run_thief(task(Theft::dram, 100, longest_theft_ns + 1), stream_), UsageError);
    EXPECT_THROW(run_thief(task(Theft::dram, 100, 0), stream_), UsageError);
    ThiefTask odd = task(Theft::dram, 100);
    odd.bytes = thief_chunk_bytes + 16;
    EXPECT_THROW(run_thief(odd, stream_), UsageError);
    odd.bytes = 0;
    EXPECT_THROW(run_thief(odd, stream_), UsageError);
    odd = task(Theft::compute, 0);
    odd.blocks = 0;
    EXPECT_THROW(run_thief(odd, stream_), UsageError);
}

}  // namespace
}  // namespace kbench::test
