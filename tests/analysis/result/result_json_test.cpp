// result.json: what is written can be read back, what is wrong is named with its place, and the schema says the same.
#include "analysis/result/result_json.h"
#include "models/base/write_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <ranges>
#include <regex>
#include <set>

#include "kbench/error.h"
#include "tests/analysis/example_result.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;
using testing::EndsWith;
using testing::HasSubstr;

std::string parse_error(const std::string& text, const std::string& path = "old.json") {
    try {
        parse_result(text, path);
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        return error.what();
    }
    return "accepted";
}

/// The message for the short result with one value replaced.
std::string parse_error_with(const std::string& pointer, const Json& value) {
    Json json = to_json(example::short_result());
    json[Json::json_pointer(pointer)] = value;
    return parse_error(json.dump());
}

TEST(ResultJson, MatchesTheGoldenFile) {
    Result result = example::profiled_result();
    result.points[0].steps.resize(2);
    result.points = {result.points[0], result.points[3]};
    expect_golden("result.json", to_text(result));
}

TEST(ResultJson, RoundTripIsTheIdentity) {
    const Json once = to_json(example::result());
    EXPECT_EQ(to_json(parse_result(once.dump(), "result.json")).dump(), once.dump());
}

TEST(ResultJson, StartsWithTheSchema) { EXPECT_EQ(to_json({}).begin().key(), "schema"); }

TEST(ResultJson, RoundTripKeepsTheWidestIntegers) {
    Result result = example::short_result();
    result.points[0].seed = std::numeric_limits<std::uint64_t>::max();
    result.environment.host.memory_bytes = std::numeric_limits<std::int64_t>::max();
    const Result again = parse_result(to_json(result).dump(), "result.json");
    EXPECT_EQ(again.points[0].seed, result.points[0].seed);
    EXPECT_EQ(again.environment.host.memory_bytes, result.environment.host.memory_bytes);
}

TEST(ResultJson, OmitsRolesWithoutBytes) {
    const Json cost = to_json(example::short_result())["points"][0]["steps"][2]["cost"];
    EXPECT_EQ(cost["bytes_written"], (Json{{"activations", 7864320.0}}));
}

TEST(ResultJson, UnavailableQuantityHasNoValueButAReason) {
    const Json json = to_json(example::short_result());
    EXPECT_EQ(json["points"][2]["conditions"]["temperature_c"],
              (Json{{"value", nullptr}, {"origin", "unavailable"}, {"reason", "no thermal zone"}}));
}

TEST(ResultJson, QuantityThatIsNotFiniteBecomesUnavailable) {
    Result result = example::short_result();
    result.points[0].conditions.power_w = Quantity::measured(std::numeric_limits<double>::infinity());
    EXPECT_EQ(to_json(result)["points"][0]["conditions"]["power_w"],
              (Json{{"value", nullptr}, {"origin", "unavailable"}, {"reason", "the value is not finite"}}));
}

TEST(ResultJson, ErrorOfAWrongKernelIsNullWhenItIsNotFinite) {
    Result result = example::short_result();
    result.points[0].verification.steps[0].worst_error = std::numeric_limits<double>::quiet_NaN();
    result.points[0].verification.steps[0].error_over_bound = std::numeric_limits<double>::infinity();
    const Json json = to_json(result);
    EXPECT_TRUE(json["points"][0]["verification"]["steps"][0]["worst_error"].is_null());
    EXPECT_TRUE(json["points"][0]["verification"]["steps"][0]["error_over_bound"].is_null());
    EXPECT_EQ(to_json(parse_result(json.dump(), "result.json")), json);
}

TEST(ResultJson, RefusesToWriteAnyOtherNumberThatIsNotFinite) {
    Result result = example::short_result();
    result.points[1].steps[2].cost.bytes_read[1] = std::numeric_limits<double>::infinity();
    try {
        to_json(result);
        FAIL() << "written";
    } catch (const MeasurementError& error) {
        EXPECT_STREQ(error.what(),
                     "points[1].steps[2].cost.bytes_read.weights is inf; result.json holds finite numbers only");
    }
}

TEST(ResultJson, WritesAnyBytesAsText) {
    Result result;
    result.environment.command_line = "kbench --out \xff\xfe";
    EXPECT_NO_THROW(parse_result(to_json(result).dump(), "result.json"));
}

TEST(ParseResult, NamesTheFieldThatIsWrong) {
    EXPECT_EQ(parse_error_with("/points/0/batch", "one"),
              "old.json: points[0].batch: expected an integer, found a string");
    EXPECT_EQ(parse_error_with("/points/0/batch", 1.5), "old.json: points[0].batch: expected an integer, found 1.5");
    EXPECT_EQ(parse_error_with("/points/1/steps/2/time_us/n", -3),
              "old.json: points[1].steps[2].time_us.n: expected an integer from 1 to 18446744073709551615, found -3");
    EXPECT_EQ(parse_error_with("/environment/host/sockets", 3000000000),
              "old.json: environment.host.sockets: expected an integer from 0 to 2147483647, found 3000000000");
    EXPECT_EQ(parse_error_with("/points/0/end_to_end/latency/samples_ms/3", nullptr),
              "old.json: points[0].end_to_end.latency.samples_ms[3]: expected a number, found null");
    EXPECT_EQ(parse_error_with("/points/0/precision", "fp8"),
              "old.json: points[0].precision: expected one of fp16, bf16, tf32, fp32, fp64, found \"fp8\"");
    EXPECT_EQ(
        parse_error_with("/points/0/memory/bytes/disk", 1),
        "old.json: points[0].memory.bytes: expected only the roles tokens, weights, activations, saved_activations, scores, logits, cache, gradients, optimizer, workspace, found \"disk\"");
    EXPECT_EQ(parse_error_with("/points", Json::object()), "old.json: points: expected an array, found an object");
    EXPECT_EQ(parse_error_with("/environment/libraries", Json::array()),
              "old.json: environment.libraries: expected an object, found an array");
    EXPECT_EQ(parse_error_with("/points/0/phase_seconds/plan", "0"),
              "old.json: points[0].phase_seconds.plan: expected a number, found a string");
    EXPECT_EQ(parse_error_with("/points/0/conditions/power_w/origin", "unavailable"),
              "old.json: points[0].conditions.power_w.value: expected null for what is unavailable, found 512.4");
    EXPECT_EQ(parse_error_with("/points/0/conditions/power_w/value", nullptr),
              "old.json: points[0].conditions.power_w.value: expected a number, found null");
}

TEST(ParseResult, NamesTheFieldThatIsUnknownOrMissing) {
    EXPECT_EQ(parse_error_with("/points/0/btach", 1), "old.json: points[0].btach: not a field of kbench.result/6");
    Json json = to_json(example::short_result());
    json["points"][1]["cost"].erase("flops");
    EXPECT_EQ(parse_error(json.dump()), "old.json: points[1].cost.flops: expected a value, found nothing");
}

TEST(ParseResult, TakesAnOlderVersionWithoutWhatIsNew) {
    Json json = to_json(example::short_result());
    json["schema"] = "kbench.result/1";
    EXPECT_EQ(to_json(parse_result(json.dump(), "old.json"))["schema"], result_schema);
    for (Json& point : json["points"]) {
        point.erase("activity");
        point.erase("counters");
        for (Json& step : point["steps"])
            for (const char* field : {"matrix_flops", "counters", "counters_discarded", "kernels"}) step.erase(field);
    }
    const Result old = parse_result(json.dump(), "old.json");
    EXPECT_TRUE(old.points[0].steps[0].kernels.empty());
    EXPECT_EQ(old.points[0].steps.size(), example::short_result().points[0].steps.size());
    json["schema"] = result_schema;
    EXPECT_EQ(parse_error(json.dump()), "old.json: points[0].activity: expected a value, found nothing");
}

TEST(ParseResult, TakesAFieldByTheNameThatItHadBefore) {
    Result result = example::short_result();
    result.points[0].compulsory_bytes = 5e6;
    result.points[0].steps[0].time_steps = 500;
    Json json = to_json(result);
    for (const auto& [at, before, now] : {std::tuple{"/points/0", "least_bytes", "compulsory_bytes"},
                                          std::tuple{"/points/0/steps/0", "dependent_steps", "time_steps"}}) {
        Json& object = json[Json::json_pointer(at)];
        const Json value = object.at(now);
        object[before] = value;
        EXPECT_THAT(parse_error(json.dump()),
                    EndsWith(fmt::format("{}: the older name of {}, which is there too", before, now)));
        object.erase(now);
        EXPECT_EQ(parse_error(json.dump()), "accepted");
    }
    EXPECT_EQ(to_json(parse_result(json.dump(), "old.json")).dump(), to_json(result).dump());
}

TEST(ParseResult, RefusesNumbersBelowWhatTheSchemaAllows) {
    for (const auto& [at, value, expected] :
         {std::tuple{"/points/0/compulsory_bytes", Json(-1),
                     "points[0].compulsory_bytes: expected a number from 0, found -1"},
          std::tuple{"/points/0/padding_flops", Json(-0.5),
                     "points[0].padding_flops: expected a number from 0, found -0.5"},
          std::tuple{"/environment/host/cpu_quota", Json(0),
                     "environment.host.cpu_quota: expected a number above 0, found 0"},
          std::tuple{"/points/0/steps/0/index", Json(-1), "points[0].steps[0].index: expected an integer from 0 to"},
          std::tuple{"/points/0/steps/0/time_steps", Json(1),
                     "points[0].steps[0].time_steps: expected an integer from 2 to"}}) {
        Json json = to_json(example::short_result());
        json[Json::json_pointer(at)] = value;
        EXPECT_THAT(parse_error(json.dump()), HasSubstr(expected));
    }
}

/// Older results have counters under names that said something else.
TEST(ParseResult, RenamesCountersThatWereNamedForWhatTheyAreNot) {
    Result result = example::result();
    StepResult& step = result.points[0].steps[0];
    step.counters = {{"tensor_active", 1}, {"tensor_hmma_inst", 2}, {"sm_active", 3}, {"ipc", 4}};
    result.points[0].counters.metrics = {CountedMetric{}};
    result.points[0].counters.metrics[0].name = "tensor_active";
    const Result read = parse_result(to_text(result), "here");
    const std::map<std::string, double> expected{
        {"tensor_pipe_active", 1}, {"tensor_pipe_inst", 2}, {"smsp_active", 3}, {"ipc", 4}};
    EXPECT_EQ(read.points[0].steps[0].counters, expected);
    EXPECT_EQ(read.points[0].counters.metrics[0].name, "tensor_pipe_active");
}

TEST(ParseResult, TakesAPointWithoutTimesOnFewerSms) {
    Json json = to_json(example::profiled_result());
    const auto scaling_of = [](const Json& text) { return parse_result(text.dump(), "old.json").points[0].sm_scaling; };
    ASSERT_TRUE(scaling_of(json));
    EXPECT_EQ(scaling_of(json)->runs.at(1).multiprocessors, 96);
    EXPECT_EQ(scaling_of(json)->runs.at(1).step_us.size(), json["points"][0]["steps"].size());
    for (const char* schema : {"kbench.result/5", "kbench.result/6"}) {
        json["schema"] = schema;
        for (Json& point : json["points"]) point.erase("sm_scaling");
        EXPECT_FALSE(scaling_of(json)) << schema;
    }
}

TEST(ParseResult, TakesConditionsWithoutBlocksAndBlocksWithoutAClock) {
    const Json written = to_json(example::profiled_result());
    const Json::json_pointer at("/points/0/conditions/blocks");
    const auto blocks_of = [](const Json& json) {
        return parse_result(json.dump(), "old.json").points[0].conditions.blocks;
    };
    ASSERT_EQ(blocks_of(written).size(), 3u);
    EXPECT_EQ(blocks_of(written)[1].sm_clock_mhz, 1755);
    EXPECT_FALSE(written[at][2].contains("sm_clock_mhz"));
    EXPECT_FALSE(blocks_of(written)[2].sm_clock_mhz);
    EXPECT_FALSE(written["points"][3]["conditions"].contains("blocks")) << "nothing was sampled";
    for (const char* schema : {"kbench.result/5", "kbench.result/6"}) {
        Json old = written;
        old["schema"] = schema;
        for (Json& point : old["points"]) point["conditions"].erase("blocks");
        EXPECT_EQ(blocks_of(old).size(), 0u) << schema;
    }
    Json wrong = written;
    wrong[at][0]["median_ms"] = "slow";
    EXPECT_EQ(parse_error(wrong.dump()),
              "old.json: points[0].conditions.blocks[0].median_ms: expected a number, found a string");
}

TEST(ParseResult, TellsForeignFilesFromNewerOnes) {
    EXPECT_EQ(parse_error("{}", "x.json"), "x.json: not a kbench result (no \"schema\")");
    EXPECT_EQ(parse_error("[1]", "x.json"), "x.json: not a kbench result (no \"schema\")");
    EXPECT_EQ(parse_error(R"({"schema": "kbench.result/7"})", "x.json"),
              "x.json: schema kbench.result/7 is newer than kbench.result/6; use a newer kbench");
    EXPECT_EQ(parse_error(R"({"schema": "pytest/9"})", "x.json"),
              "x.json: not a kbench result (\"schema\" is a string, not \"kbench.result/6\")");
    EXPECT_EQ(parse_error(R"({"schema": 1})", "x.json"),
              "x.json: not a kbench result (\"schema\" is 1, not \"kbench.result/6\")");
}

TEST(ParseResult, RefusesWhatIsNotJson) {
    const std::string text = to_json(example::short_result()).dump();
    EXPECT_THAT(parse_error(text.substr(0, text.size() / 2)), testing::StartsWith("old.json: not JSON: parse error"));
    EXPECT_THAT(parse_error(""), HasSubstr("old.json: not JSON: "));
    EXPECT_THAT(parse_error(R"({"schema": 1e999})"), HasSubstr("old.json: not JSON: number overflow"));
}

/// Runs scripts/validate-result where Python has what it needs.
class Schema : public testing::Test {
  protected:
    struct Outcome {
        int exit_code;
        std::string output;
    };

    void SetUp() override {
        if (std::system("python3 -c 'import jsonschema' >/dev/null 2>&1") != 0)
            GTEST_SKIP() << "python3 with the package jsonschema is not installed";
    }

    std::string write(const std::string& name, const std::string& text) {
        write_file_atomically(directory_ / name, text);
        return (directory_ / name).string();
    }

    Outcome validate(const std::string& files) {
        const std::string output = (directory_ / "output").string();
        const int status = std::system(
            fmt::format("'{}/scripts/validate-result' {} >{} 2>&1", KBENCH_SOURCE_DIR, files, output).c_str());
        return {WEXITSTATUS(status), read_file(output)};
    }

    ScratchDirectory directory_;
};

TEST_F(Schema, AcceptsWhatIsWritten) {
    Result not_finite = example::short_result();
    not_finite.points[0].verification.steps[0].worst_error = std::numeric_limits<double>::infinity();
    Result host_only = example::short_result();
    host_only.environment.gpu.reset();
    const auto [exit_code, output] =
        validate(write("example.json", to_json(example::result()).dump(2)) + " " +
                 write("nan.json", to_json(not_finite).dump()) + " " + write("cpu.json", to_json(host_only).dump()));
    EXPECT_EQ(exit_code, 0) << output;
}

/// One of everything: a point with a step.
Json smallest_example() {
    Result result = example::profiled_result();
    result.points.resize(1);
    result.points[0].steps.resize(1);
    result.environment.gpu->multiprocessors_of_device = 144;
    result.points[0].steps[0].time_steps = 500;
    result.ceilings.lacked_share = 0.01;
    result.points[0].end_to_end->runs_per_sample = 67;
    result.points[0].conditions.throttle_unavailable = "no thermal_throttle/package_throttle_count";
    result.points[0].conditions.cpu_share.emplace().waited_share = Quantity::measured(0.02);
    result.environment.host.threads_from = "--threads";
    result.environment.host.machine_cpus = 64;
    result.environment.host.cpu_quota = 0.5;
    result.ceilings.threads = 16;
    result.ceilings.ceilings.at(0).threads = 16;
    result.configuration = {{"n_embd", "32", "hidden_size"}};
    return to_json(result);
}

/// What a file need not have.
bool is_optional(const std::string& pointer) {
    static const std::regex field(
        "/end_to_end/(sequences_per_s|tokens_per_s|energy_per_sequence_j|energy_per_token_j|runs_per_sample)$|/compulsory_bytes$|/largest_batches$|/conditions/(blocks(/0/sm_clock_mhz)?|throttle_unavailable|cpu_share)$|/lacked_share$|/sm_scaling(/ended)?$|/theft$|/multiprocessors_of_device$|/time_steps$|/host/(threads_from|machine_cpus|cpu_quota)$|/ceilings(/ceilings/0)?/threads$|^/configuration$");
    return std::regex_search(pointer, field) || std::ranges::any_of(axes(), [&](const Axis& axis) {
               return !axis.needed && pointer == fmt::format("/points/0/{}", axis.name);
           });
}

/// Pointers to all values below `json`; only the first element of an array.
void collect_pointers(const Json& json, const std::string& prefix, std::set<std::string>& pointers) {
    if (json.is_array() && !json.empty()) collect_pointers(json[0], prefix + "/0", pointers);
    if (!json.is_object()) return;
    for (const auto& [key, value] : json.items()) {
        pointers.insert(prefix + "/" + key);
        collect_pointers(value, prefix + "/" + key, pointers);
    }
}

TEST_F(Schema, RefusesTheSameMissingAndUnknownFieldsAsTheParser) {
    const Json valid = smallest_example();
    std::set<std::string> pointers;
    collect_pointers(valid, "", pointers);
    std::vector<std::string> texts;
    for (const std::string& pointer : pointers) {
        const Json::json_pointer at(pointer);
        const bool free_key =
            std::regex_search(pointer, std::regex("/(libraries|options|phase_seconds|bytes\\w*|steps/\\d+/counters)/"));
        if (!free_key && !is_optional(pointer)) {
            Json shorter = valid;
            shorter[at.parent_pointer()].erase(at.back());
            texts.push_back(shorter.dump());
        }
        const bool takes_any_key =
            std::regex_search(pointer, std::regex("/(libraries|options|phase_seconds|steps/\\d+/counters)$"));
        if (valid[at].is_object() && !takes_any_key) {
            Json longer = valid;
            longer[at]["surplus"] = 1;
            texts.push_back(longer.dump());
        }
    }
    ASSERT_GT(texts.size(), 100u);
    std::string files;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_NE(parse_error(texts[i]), "accepted") << i;
        files += write(fmt::format("{}.json", i), texts[i]) + " ";
    }
    const auto [exit_code, output] = validate(files);
    EXPECT_EQ(exit_code, 1);
    EXPECT_THAT(output, Not(HasSubstr(": valid")));
}

TEST_F(Schema, AcceptsTheSameMissingFieldsAsTheParser) {
    const Json valid = smallest_example();
    std::set<std::string> pointers;
    collect_pointers(valid, "", pointers);
    Json without = valid;
    std::size_t missing = 0;
    for (const std::string& pointer : std::views::reverse(pointers))  // an element's field before the list
        if (is_optional(pointer)) {
            const Json::json_pointer at(pointer);
            without[at.parent_pointer()].erase(at.back());
            ++missing;
        }
    EXPECT_GT(missing, 8u);
    EXPECT_EQ(parse_error(without.dump()), "accepted");
    const auto [exit_code, output] = validate(write("without.json", without.dump()));
    EXPECT_EQ(exit_code, 0) << output;
}

TEST_F(Schema, RefusesTheSameWrongTypesAsTheParser) {
    const Json valid = smallest_example();
    std::set<std::string> pointers;
    collect_pointers(valid, "", pointers);
    std::string files;
    std::size_t number = 0;
    for (const std::string& pointer : pointers) {
        Json wrong = valid;
        Json& value = wrong[Json::json_pointer(pointer)];
        value = value.is_string() ? Json(1) : Json("wrong");
        EXPECT_NE(parse_error(wrong.dump()), "accepted") << pointer;
        files += write(fmt::format("{}.json", number++), wrong.dump()) + " ";
    }
    const auto [exit_code, output] = validate(files);
    EXPECT_EQ(exit_code, 1);
    EXPECT_THAT(output, Not(HasSubstr(": valid")));
}

TEST_F(Schema, NamesThePlaceOfAnError) {
    Json json = to_json(example::short_result());
    json["points"][0]["end_to_end"]["latency"]["summary_ms"]["median"] = "fast";
    const auto [exit_code, output] = validate(write("wrong.json", json.dump()));
    EXPECT_EQ(exit_code, 1);
    EXPECT_THAT(output, HasSubstr("points[0].end_to_end.latency.summary_ms.median: 'fast' is not of type 'number'"));
}

TEST_F(Schema, ExitCodeTellsInvalidFromUnreadable) {
    EXPECT_EQ(validate(write("nan.json", R"({"schema": NaN})")).exit_code, 1);
    EXPECT_EQ(validate((directory_ / "missing.json").string()).exit_code, 2);
    EXPECT_EQ(validate("").exit_code, 2);
}

}  // namespace
}  // namespace kbench
