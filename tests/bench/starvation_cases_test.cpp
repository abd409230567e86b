// The built program where other work or a quota takes its CPUs: it says so, and never that nothing was seen where
// nothing looked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/device/cpu_quota.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class StarvationCases : public Program {
  protected:
    /// 2 ms a forward on one CPU.
    std::string command() {
        const std::string model =
            config(R"({"n_embd": 128, "n_layer": 4, "n_head": 4, "vocab_size": 4001, "n_positions": 64})");
        return "KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " KBENCH_BINARY " --config " + model +
               " --seq 64 --backend cpu --latency-only --no-verify --quick --time-budget 0.2 --ceilings none --out " +
               out();
    }
    std::string out() { return (directory_ / "run").string(); }
    nlohmann::json conditions() {
        return nlohmann::json::parse(read_text(out() + "/result.json"))["points"][0]["conditions"];
    }
};

/// A control group of this test below this process's own, which a quota holds back; removed with its processes' end.
class HeldBack {
  public:
    HeldBack() {
        for (const std::filesystem::path& group : cpu_cgroups()) {
            folder_ = group / ("kbench-test-" + std::to_string(getpid()));
            std::error_code error;
            if (!std::filesystem::create_directory(folder_, error) || error) continue;
            const bool second = write("cpu.max", "20000 100000");
            if (second || (write("cpu.cfs_period_us", "100000") && write("cpu.cfs_quota_us", "20000"))) return;
            std::filesystem::remove(folder_, error);
        }
        folder_.clear();
    }
    ~HeldBack() {
        if (!folder_.empty()) rmdir(folder_.c_str());
    }
    HeldBack(const HeldBack&) = delete;
    HeldBack& operator=(const HeldBack&) = delete;
    bool works() const { return !folder_.empty(); }
    /// A shell command that puts its shell there.
    std::string enter() const { return "echo $$ > " + (folder_ / "cgroup.procs").string() + " && "; }

  private:
    bool write(const char* file, const char* text) const {
        if (!std::filesystem::exists(folder_ / file)) return false;
        std::ofstream stream(folder_ / file);
        return static_cast<bool>(stream << text << std::flush);
    }
    std::filesystem::path folder_;
};

TEST_F(StarvationCases, AQuotaThatHoldsTheProcessBackIsSeen) {
    const HeldBack group;
    if (!group.works()) GTEST_SKIP() << "no control group can be made here";
    const Outcome outcome = shell("sh -c '" + group.enter() + command() + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string all = outcome.out + outcome.err;
    EXPECT_THAT(all, ContainsRegex("a quota held the\\s+process back in [0-9]+ of [0-9]+ periods"));
    EXPECT_THAT(all, Not(HasSubstr("throttling none seen")));
    const nlohmann::json share = conditions()["cpu_share"];
    EXPECT_GT(share["throttled_periods"]["value"], 0);
    EXPECT_GE(share["quota_periods"]["value"], share["throttled_periods"]["value"]);
    // A fast CPU has samples that end before the quota does: those alone are kept.
    if (share["starved_samples"] > 0) return;
    EXPECT_THAT(all, ContainsRegex("lacked\\s+its\\s+CPUs"));
    EXPECT_GT(share["waited_share"]["value"].get<double>() + share["throttled_share"]["value"].get<double>(), 0.5);
}

TEST_F(StarvationCases, OtherWorkOnItsCpusIsSeen) {
    if (shell("taskset -c 0 true").exit_code != 0) GTEST_SKIP() << "no taskset, or no CPU 0";
    const Outcome outcome = shell("sh -c 'taskset -c 0 sh -c \"while :; do :; done\" & hog=$!; taskset -c 0 env " +
                                  command() + "; code=$?; kill $hog; exit $code'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const nlohmann::json share = conditions()["cpu_share"];
    EXPECT_GT(share["load"]["value"], 0);
    const std::string all = outcome.out + outcome.err;
    if (share["starved_samples"] > 0) {
        EXPECT_LE(share["waited_share"]["value"], 0.05) << "between two slices of the other work";
        EXPECT_THAT(all, ContainsRegex("starved\\s+samples\\s+repeated"));
    } else {
        EXPECT_GT(share["waited_share"]["value"], 0.2);
        EXPECT_THAT(all, ContainsRegex("lacked\\s+its\\s+CPUs"));
    }
}

TEST_F(StarvationCases, ThrottlingIsNotKnownWhereNothingLooked) {
    const Outcome outcome = shell(command());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string why = conditions()["throttle_unavailable"];
    const bool looks = std::filesystem::exists("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count");
    EXPECT_EQ(why.empty(), looks);
    if (!looks) {
        EXPECT_THAT(outcome.out, ContainsRegex("not\\s+known"));
        EXPECT_THAT(outcome.out, Not(ContainsRegex("throttling\\s+none\\s+seen")));
    }
}

}  // namespace
}  // namespace kbench
