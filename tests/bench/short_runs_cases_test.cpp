// The built program where one run is short for the clock: a sample is as many as the clock can tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/measure/point/clock.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

class ShortRuns : public Program {
  protected:
    /// The points of a run of kbench micro on hot operands.
    Json points(const std::string& arguments) {
        const std::string out = (directory_ / "micro").string();
        std::filesystem::remove_all(out);
        const Outcome outcome =
            kbench("micro --backend cpu --ceilings none --counters none --cache hot --time-budget " +
                   ("0.05 --out " + out + " " + arguments));
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        out_ = outcome.out;
        return Json::parse(read_text(out + "/result.json")).at("points");
    }
    std::string out_;
};

void expect_told_by_the_clock(const Json& point) {
    const Json& times = point.at("end_to_end");
    const double runs = times.at("runs_per_sample").get<double>();
    const double median_ms = times.at("latency").at("summary_ms").at("median").get<double>();
    for (const Json& ms : times.at("latency").at("samples_ms")) EXPECT_GT(ms.get<double>(), 0) << point.at("model");
    // The tick is that of another process: half of what a sample lasts at the least.
    EXPECT_GT(median_ms * runs, 0.5 * least_ticks * clock_tick_ms(false)) << point.at("model");
}

TEST_F(ShortRuns, ASampleOfATinyGemmIsManyRunsByEachProvider) {
    const Json all = points("--op gemm --shape m1n1k1 --precision fp32 --provider blas,onednn,native");
    EXPECT_GE(all.size(), 2u);
    for (const Json& point : all) {
        if (point.at("status") != "done") continue;
        expect_told_by_the_clock(point);
        EXPECT_GE(point.at("steps").at(0).at("time_us").at("median").get<double>(), 1e-3) << "no run takes a tick";
    }
    EXPECT_GT(all.at(0).at("end_to_end").at("runs_per_sample").get<int>(), 1);
    EXPECT_THAT(out_, HasSubstr(" runs a sample"));
}

TEST_F(ShortRuns, SoAreThoseOfOtherTinyOps) {
    const std::string shapes =
        directory_.write("shapes", "residual r1w1\ngelu r1w4\nlayernorm r1w4\nsoftmax r1w4\nbias r1w4\n").string();
    const Json all = points("--shapes " + shapes + " --precision fp32 --provider native");
    std::size_t done = 0;
    for (const Json& point : all) {
        if (point.at("status") != "done") continue;
        ++done;
        expect_told_by_the_clock(point);
    }
    EXPECT_GT(done, 0u);
}

TEST_F(ShortRuns, ALongRunIsASampleByItself) {
    const Json all = points("--op gemm --shape m256n256k256 --precision fp32 --provider blas");
    EXPECT_EQ(all.at(0).at("end_to_end").at("runs_per_sample"), 1);
    EXPECT_THAT(out_, Not(HasSubstr("runs a sample")));
}

TEST_F(ShortRuns, AModelOfAMicrosecondIsSampledSo) {
    const std::string out = (directory_ / "run").string();
    const std::string tiny_model =
        config(R"({"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 8, "n_positions": 8})");
    ASSERT_EQ(
        kbench("run --config " + tiny_model + " --seq 1 --backend cpu --quick --ceilings none --out " + out).exit_code,
        0);
    expect_told_by_the_clock(Json::parse(read_text(out + "/result.json")).at("points").at(0));
}

}  // namespace
}  // namespace kbench
