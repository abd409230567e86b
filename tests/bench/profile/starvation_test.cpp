// Asking again and again whether the process lacked its CPUs, of a machine that says what a test plants.
#include "bench/profile/starvation.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

/// A host with one thread, which waited for as long as a test says, and with a clock of its own: asking what it shows
/// takes a microsecond.
class PlantedHost final : public MachineState {
  public:
    MachineReading read() override { return {}; }
    std::uint64_t throttle_mask() override { return 0; }
    std::string throttle_unavailable() const override { return {}; }
    std::optional<CpuCounts> cpu_counts() override {
        if (is_gpu) return std::nullopt;
        ++asked;
        CpuCounts counts;
        counts.at_s = time_s;
        counts.threads[1] = {counts.at_s, waited_s, 0};
        time_s += looking_s;
        return counts;
    }

    std::function<double()> clock() {
        return [this] { return time_s += 1e-6; };
    }

    double time_s = 100, waited_s = 0, looking_s = 0;
    int asked = 0;
    bool is_gpu = false;
};

/// The answer, when there is one.
bool next(StarvationWatch& watch) {
    for (;;)
        if (const std::optional<bool> lacked = watch.lacked(false)) return *lacked;
}

TEST(StarvationWatch, AnswersOfTheTimeSinceTheAnswerBefore) {
    PlantedHost host;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    EXPECT_FALSE(watch.lacked(false)) << "too early to tell";
    EXPECT_EQ(host.asked, 1) << "and not looked";
    EXPECT_FALSE(next(watch));
    host.waited_s = 0.001;
    EXPECT_FALSE(next(watch)) << "2 % are no lack";
    host.waited_s = 10;
    EXPECT_TRUE(next(watch));
    EXPECT_FALSE(next(watch)) << "it waited before";
}

TEST(StarvationWatch, TheLastQuestionIsAnsweredAtOnce) {
    PlantedHost host;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    host.waited_s = 10;
    EXPECT_EQ(watch.lacked(true), true);
}

TEST(StarvationWatch, LooksSeldomWhereLookingTakesLong) {
    PlantedHost host;
    host.looking_s = 0.01;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    const double began_s = host.time_s;
    next(watch);
    EXPECT_NEAR(host.time_s - began_s, 0.2, 0.001) << "twenty times as long, from the look before the begin on";
}

TEST(StarvationWatch, LooksOftenBetweenTheTimeSlicesOfOtherWork) {
    PlantedHost host;
    host.looking_s = 0.0005;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    next(watch);
    host.waited_s = 10;
    EXPECT_TRUE(next(watch));
    double began_s = host.time_s;
    EXPECT_FALSE(next(watch));
    EXPECT_NEAR(host.time_s - began_s, 0.01, 0.001) << "twenty looks";
    for (int i = 0; i < 4; ++i) next(watch);
    began_s = host.time_s;
    next(watch);
    EXPECT_NEAR(host.time_s - began_s, 0.05, 0.001) << "after some clean time as seldom as ever";
}

TEST(StarvationWatch, SharesAreOfTheCleanTimeOrOfAll) {
    PlantedHost host;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    next(watch);
    host.waited_s = 10;
    next(watch);
    EXPECT_EQ(watch.share(false)->waited_share.value, 0);
    EXPECT_EQ(watch.share(true)->waited_share.value, 1);
    EXPECT_TRUE(watch.share(true)->starved());
    watch.begin();
    EXPECT_FALSE(watch.share(true)->waited_share.value) << "a new window";
}

TEST(StarvationWatch, WhereADeviceDoesTheWorkThereIsNoLackAndNoShare) {
    PlantedHost host;
    host.is_gpu = true;
    StarvationWatch watch(host, host.clock());
    watch.begin();
    EXPECT_EQ(watch.lacked(false), false);
    EXPECT_FALSE(watch.share(true));
}

}  // namespace
}  // namespace kbench
