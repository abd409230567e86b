// A call that does not return is named, and one signal ends the process all the same.
#include "bench/measure/point/call_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "bench/measure/point/stop_signal.h"
#include "bench/plan/current_call.h"

namespace kbench {
namespace {

using CallFinding = CallProgress::Finding;

constexpr const char* gemm = "gemm m1n1k1 of h.0 by blas";

TEST(CallProgress, NamesACallThatDoesNotReturnLessAndLessOften) {
    CallProgress progress({.notice_s = 60});
    std::vector<double> noticed;
    for (int s = 0; s < 600; ++s)
        if (progress.look({gemm, 7, false}, s) == CallFinding::slow_call) noticed.push_back(s);
    EXPECT_THAT(noticed, testing::ElementsAre(60, 120, 240, 480));
    EXPECT_EQ(progress.look({gemm, 8, false}, 600), CallFinding::nothing) << "another call of the same step";
    EXPECT_EQ(progress.look({gemm, 8, false}, 659), CallFinding::nothing);
    EXPECT_EQ(progress.look({gemm, 8, false}, 660), CallFinding::slow_call);
}

TEST(CallProgress, IsQuietBetweenCalls) {
    CallProgress progress({.notice_s = 60});
    for (int s = 0; s < 600; ++s) EXPECT_EQ(progress.look({nullptr, 7, false}, s), CallFinding::nothing);
}

TEST(CallProgress, AfterASignalWhatDoesNotMoveIsStuck) {
    CallProgress progress({.notice_s = 60, .patience_s = 10});
    EXPECT_EQ(progress.look({gemm, 7, false}, 0), CallFinding::nothing);
    EXPECT_EQ(progress.look({gemm, 7, true}, 50), CallFinding::nothing) << "patience begins with the signal";
    EXPECT_EQ(progress.look({gemm, 7, true}, 59), CallFinding::nothing);
    EXPECT_EQ(progress.look({gemm, 7, true}, 60), CallFinding::stuck);
}

TEST(CallProgress, AfterASignalCallsThatReturnGoOn) {
    CallProgress progress({.notice_s = 60, .patience_s = 10});
    for (int s = 0; s < 300; ++s)
        EXPECT_EQ(progress.look({gemm, static_cast<std::uint64_t>(s / 9), true}, s), CallFinding::nothing) << s;
    EXPECT_EQ(progress.look({nullptr, 34, true}, 301), CallFinding::nothing);
    EXPECT_EQ(progress.look({nullptr, 34, true}, 311), CallFinding::stuck) << "nothing is computed any more";
}

constexpr WatchOptions quick{.look_s = 0.02, .notice_s = 0.1, .patience_s = 0.2};

[[noreturn]] void wait_for_ever() {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// A shell starts its background jobs with SIGINT ignored, and what is ignored stays so.
class StuckCall : public testing::Test {
  protected:
    StuckCall() {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    }
};

TEST_F(StuckCall, OneSignalEndsTheProcessAndNamesIt) {
    EXPECT_EXIT(
        {
            const StopSignals signals(quick);
            const CurrentCall call(call_name(gemm));
            std::raise(SIGTERM);
            wait_for_ever();
        },
        testing::KilledBySignal(SIGTERM),
        "kbench: stopped by SIGTERM: gemm m1n1k1 of h.0 by blas has not returned for");
    EXPECT_EXIT(
        {
            const StopSignals signals(quick);
            std::raise(SIGINT);
            wait_for_ever();
        },
        testing::KilledBySignal(SIGINT), "kbench: stopped by SIGINT\n");
}

TEST_F(StuckCall, IsNamedWithoutASignal) {
    EXPECT_EXIT(
        {
            const StopSignals signals(quick);
            const CurrentCall call(call_name(gemm));
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            std::_Exit(3);
        },
        testing::ExitedWithCode(3), "kbench: gemm m1n1k1 of h.0 by blas has not returned for 0.1.*; SIGTERM");
}

TEST_F(StuckCall, WhoeverKnowsOfTheSignalHasTime) {
    EXPECT_EXIT(
        {
            const StopSignals signals(quick);
            std::raise(SIGTERM);
            if (StopSignals::asked() == SIGTERM) std::this_thread::sleep_for(std::chrono::milliseconds(600));
            std::_Exit(4);
        },
        testing::ExitedWithCode(4), "");
    EXPECT_EXIT(
        {
            const StopSignals signals(quick);
            StopSignals::finish();
            std::raise(SIGTERM);
            std::this_thread::sleep_for(std::chrono::milliseconds(600));
            std::_Exit(5);
        },
        testing::ExitedWithCode(5), "");
}

TEST_F(StuckCall, ASignalThatIsIgnoredStaysIgnored) {
    EXPECT_EXIT(
        {
            std::signal(SIGINT, SIG_IGN);
            const StopSignals signals(quick);
            std::raise(SIGINT);
            std::this_thread::sleep_for(std::chrono::milliseconds(400));
            std::_Exit(StopSignals::asked() == 0 ? 6 : 7);
        },
        testing::ExitedWithCode(6), "");
}

TEST(CurrentCall, IsThereWhileItLasts) {
    EXPECT_EQ(CurrentCall::name(), nullptr);
    const std::uint64_t before = CurrentCall::count();
    {
        const CurrentCall call(call_name("a call"));
        EXPECT_STREQ(CurrentCall::name(), "a call");
    }
    EXPECT_EQ(CurrentCall::name(), nullptr);
    EXPECT_EQ(CurrentCall::count(), before + 1);
    EXPECT_EQ(call_name("a call"), call_name(std::string("a ") + "call"));
}

}  // namespace
}  // namespace kbench
