// The built program on figures that carry no conclusion: none is drawn, by any command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "models/base/gzip.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class NoGround : public Program {};

TEST_F(NoGround, IsSaidByEveryCommandThatReadsARecordedRun) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-23/fp32/result.json.gz";
    const Json sound = Json::parse(gunzip(read_text(recorded), recorded));
    EXPECT_THAT(kbench("report --format text " + recorded).out, HasSubstr("Bandwidth-bound? NO: DRAM"));
    EXPECT_THAT(kbench("report --format text --verbose " + recorded).out,
                ContainsRegex("so DRAM is\\s+not the\\s+bottleneck"));
    const std::map<std::string, std::function<void(Json&)>> faults = {
        {"samples", [](Json& point) { point["end_to_end"]["latency"]["summary_ms"]["independent"] = 5; }},
        {"drift",
         [](Json& point) {
             point["activity"]["unprofiled_ms"] =
                 0.15 * point["end_to_end"]["latency"]["summary_ms"]["median"].get<double>();
         }},
        {"starved",
         [](Json& point) {
             const Json unknown{{"value", nullptr}, {"origin", "unavailable"}, {"reason", "planted"}},
                 known{{"value", 0.4}, {"origin", "measured"}, {"reason", ""}};
             point["conditions"]["cpu_share"] = {{"waited_share", known},
                                                 {"steal_share", unknown},
                                                 {"throttled_share", unknown},
                                                 {"throttled_periods", unknown},
                                                 {"quota_periods", unknown},
                                                 {"involuntary_switches", unknown},
                                                 {"load", unknown},
                                                 {"pressure_share", unknown},
                                                 {"starved_samples", 0}};
         }},
    };
    for (const auto& [name, plant] : faults) {
        Json json = sound;
        plant(json["points"][0]);
        const std::string file = directory_.write(name + ".json", json.dump()).string();
        const Outcome text = kbench("report --format text --verbose " + file);
        EXPECT_EQ(text.exit_code, 0) << name << text.err;
        EXPECT_THAT(text.out, AllOf(HasSubstr("No conclusion is drawn"), HasSubstr("end to end"))) << name;
        const Outcome screen = kbench("report --format text " + file);
        EXPECT_THAT(screen.out, HasSubstr("No conclusion is drawn")) << name;
        for (const char* conclusion :
             {"-bound", "not the bottleneck", "its bottleneck", "would shorten", "would give", "to gain"})
            for (const Outcome* shown : {&text, &screen}) EXPECT_THAT(shown->out, Not(HasSubstr(conclusion))) << name;
        EXPECT_THAT(kbench("table --by point -c verdict " + file).out, HasSubstr("unknown")) << name;
        EXPECT_THAT(kbench("report --what-if a100-sxm4-80gb " + file).out, Not(HasSubstr(" expected there"))) << name;
        const Outcome compared = kbench("compare " + recorded + " " + file);
        EXPECT_THAT(compared.out, HasSubstr("No conclusion is drawn")) << name;
        EXPECT_THAT(compared.out, Not(HasSubstr("Scaling"))) << name;
    }
}

}  // namespace
}  // namespace kbench
