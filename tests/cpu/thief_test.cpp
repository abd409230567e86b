// A thief's threads do what they are told, on the cores that they are given, and end.
#include "cpu/probe/thief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cpu/threads.h"
#include "kbench/error.h"

namespace kbench::cpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ThiefOnACore : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = ThiefThreads::unavailable(); !why.empty()) GTEST_SKIP() << why;
    }
    static std::vector<int> last_core() { return {physical_cores().back()}; }
    static double bytes_in(ThiefThreads& thief, milliseconds time) {
        const double before = thief.bytes();
        std::this_thread::sleep_for(time);
        return thief.bytes() - before;
    }
};

TEST_F(ThiefOnACore, StoresOnlyWhereItIsToldTo) {
    ThiefThreads thief(last_core());
    EXPECT_FALSE(thief.is_running());
    EXPECT_EQ(bytes_in(thief, milliseconds(5)), 0);
    thief.start(Theft::compute, 0, seconds(5));
    EXPECT_TRUE(thief.is_running());
    EXPECT_EQ(bytes_in(thief, milliseconds(5)), 0);
    thief.start(Theft::stores, 0, seconds(5));
    EXPECT_GT(bytes_in(thief, milliseconds(100)), 0);
    thief.start(Theft::nothing, 0, {});
    std::this_thread::sleep_for(milliseconds(50));  // for the chunk that it was in
    EXPECT_EQ(bytes_in(thief, milliseconds(5)), 0);
}

/// Other work may take time from it, but nothing gives it more.
TEST_F(ThiefOnACore, StoresNoFasterThanItIsToldTo) {
    ThiefThreads thief(last_core());
    constexpr double bytes_per_s = 200e6;
    const auto begin = std::chrono::steady_clock::now();
    thief.start(Theft::stores, bytes_per_s, seconds(5));
    std::this_thread::sleep_for(milliseconds(200));
    const double stored = thief.bytes();
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_GT(stored, 0);
    EXPECT_LT(stored, bytes_per_s * s + 2e6);
}

TEST_F(ThiefOnACore, EndsByItself) {
    ThiefThreads thief(last_core());
    thief.start(Theft::stores, 0, milliseconds(20));
    std::this_thread::sleep_for(milliseconds(150));
    EXPECT_FALSE(thief.is_running());
    EXPECT_EQ(bytes_in(thief, milliseconds(5)), 0);
}

TEST_F(ThiefOnACore, IsRefusedWhereItMayNotStay) { EXPECT_THROW(ThiefThreads({8191}), DeviceError); }

TEST_F(ThiefOnACore, AllCoresTogetherHaveARate) { EXPECT_GT(stored_bytes_per_s(last_core(), 0.05), 0); }

}  // namespace
}  // namespace kbench::cpu
