// A model without a sequence, tokens or logits goes the whole way: named inputs and outputs, its own axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "bench/measure/sweep/run.h"
#include "bench/plan/data/npy.h"
#include "kbench/error.h"
#include "models/mlp.h"
#include "models/registry.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

class MlpRun : public testing::Test {
  protected:
    MlpRun() : options_(small_run(out_ / "")) {
        options_.model = read_model(R"({"model_type": "mlp", "name": "small", "sizes": [70, 33, 9]})", "c.json");
        options_.values.erase("seq");
        options_.values["batch"] = {3};
        options_.values["precision"] = {"fp64"};
    }
    Result run() {
        Result result;
        Progress progress;
        run_points(options_, cpu(), cpu_profiler(), result, progress);
        return result;
    }

    TemporaryDirectory out_;
    RunOptions options_;
};

TEST_F(MlpRun, GivesTheOutputsOfItsInputs) {
    const std::vector<std::int64_t> shape{3, 70};
    std::vector<double> inputs(3 * 70);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = std::sin(static_cast<double>(i));
    write_npy(out_ / "in.npy", shape, DataType::fp64, inputs.data(), 70);
    options_.inputs["inputs"] = out_ / "in.npy";
    const auto outputs_by = [&](const ProviderChoice& providers, const std::string& name) {
        options_.providers = providers;
        options_.out = out_ / name;
        options_.dumps["outputs"] = out_ / (name + ".npy");
        const Result result = run();
        EXPECT_EQ(result.points.at(0).status, PointStatus::done) << result.points.at(0).reason;
        return read_npy_floats(out_ / (name + ".npy"));
    };
    const FloatArray got = outputs_by({}, "default"), right = outputs_by({{"*", "reference"}}, "reference");
    EXPECT_EQ(got.shape, (std::vector<std::int64_t>{3, 9}));
    ASSERT_EQ(got.values.size(), right.values.size());
    for (std::size_t i = 0; i < got.values.size(); ++i) EXPECT_NEAR(got.values[i], right.values[i], 1e-12) << i;
    EXPECT_GT(std::abs(right.values[0]), 0);
}

TEST_F(MlpRun, SaysNothingOfSequencesAndTokens) {
    const Result result = run();
    const Point& point = result.points.at(0);
    EXPECT_EQ(point.axes.find("seq"), nullptr);
    EXPECT_EQ(point.axes.find("attention"), nullptr);
    EXPECT_FALSE(point.end_to_end->tokens_per_s.has_value());
    const std::string json = to_text(result);
    for (const char* field : {"\"seq\":", "\"attention\":", "tokens_per_s", "sequences_per_s"})
        EXPECT_THAT(json, Not(HasSubstr(field)));
    for (const char* word : {"tokens/s", "sequence", "attention"}) {
        EXPECT_THAT(write_terminal(result, 100), Not(HasSubstr(word)));
        EXPECT_THAT(write_markdown(result), Not(HasSubstr(word)));
    }
    EXPECT_EQ(parse_result(json, "again").points.at(0).axes, point.axes);
}

TEST_F(MlpRun, RefusesInputsAndOutputsThatItHasNot) {
    options_.inputs["tokens"] = "t.npy";
    try {
        run();
        ADD_FAILURE() << "tokens were accepted";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--input tokens=t.npy: small has no such; must be one of inputs"));
    }
    options_.inputs.clear();
    options_.dumps["logits"] = "l.npy";
    try {
        run();
        ADD_FAILURE() << "logits were accepted";
    } catch (const UsageError& error) {
        EXPECT_THAT(error.what(), HasSubstr("--dump-output logits=l.npy: small has no such; must be one of outputs"));
    }
}

}  // namespace
}  // namespace kbench
