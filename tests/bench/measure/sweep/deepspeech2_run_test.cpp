// A model of speech goes the whole way: utterances of several lengths, two inputs, its own axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>

#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/match.h"
#include "analysis/result/result_json.h"
#include "bench/measure/sweep/run.h"
#include "bench/plan/data/npy.h"
#include "kbench/error.h"
#include "models/lengths.h"
#include "models/registry.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class DeepSpeech2Run : public testing::Test {
  protected:
    DeepSpeech2Run() : options_(small_run(out_ / "")) {
        options_.model = read_model(
            R"({"model_type": "deepspeech2", "hidden_size": 12, "hidden_layers": 2, "conv_channels": 3, "labels": 5,
                "sample_rate": 1600})",
            "small.json");
        options_.values.erase("seq");
        options_.values["batch"] = {3};
        options_.values["frames"] = {21};
        options_.values["precision"] = {"fp64"};
    }
    Result run() {
        Result result;
        Progress progress;
        run_points(options_, cpu(), cpu_profiler(), result, progress);
        return result;
    }
    FloatArray logits(const std::string& name, const ProviderChoice& providers = {}) {
        options_.providers = providers;
        options_.out = out_ / name;
        options_.dumps["logits"] = out_ / (name + ".npy");
        const Result result = run();
        EXPECT_EQ(result.points.at(0).status, PointStatus::done) << result.points.at(0).reason;
        return read_npy_floats(out_ / (name + ".npy"));
    }
    void set_lengths(const std::string& text) {
        std::ofstream(out_ / "lengths.txt") << text;
        options_.inputs["lengths"] = out_ / "lengths.txt";
    }

    TemporaryDirectory out_;
    RunOptions options_;
};

TEST_F(DeepSpeech2Run, GivesTheLogitsOfUtterancesOfSeveralLengthsForEveryCell) {
    set_lengths("21 8 13\n");
    for (const char* cell : {"lstm", "gru", "rnn"}) {
        options_.values["cell"] = {cell};
        const FloatArray got = logits(cell), right = logits(std::string(cell) + "_reference", {{"*", "reference"}});
        EXPECT_EQ(got.shape, (std::vector<std::int64_t>{11, 3, 5}));
        for (std::size_t i = 0; i < got.values.size(); ++i) ASSERT_NEAR(got.values[i], right.values[i], 1e-12) << i;
    }
}

TEST_F(DeepSpeech2Run, WhatIsPaddedBehindAnUtteranceChangesNothingOfIt) {
    std::vector<double> spectrogram(3 * 17 * 21);
    for (std::size_t i = 0; i < spectrogram.size(); ++i) spectrogram[i] = std::sin(static_cast<double>(i * i));
    const auto write = [&](const std::string& name) {
        const std::vector<std::int64_t> shape{3, 1, 17, 21};
        write_npy(out_ / name, shape, DataType::fp64, spectrogram.data(), 21);
        options_.inputs["spectrogram"] = out_ / name;
    };
    write("spectrogram.npy");
    const FloatArray full = logits("full");
    set_lengths("21 8 13");
    const FloatArray ragged = logits("ragged");
    const auto row = [](const FloatArray& array, std::int64_t step, std::int64_t n) {
        const auto begin = array.values.begin() + (step * 3 + n) * 5;
        return std::vector<double>(begin, begin + 5);
    };
    for (std::int64_t step = 0; step < 11; ++step) {
        EXPECT_EQ(row(full, step, 0), row(ragged, step, 0)) << "the longest";
        EXPECT_NE(row(full, step, 1), row(ragged, step, 1));
        if (step > 4) {
            EXPECT_EQ(row(ragged, step, 1), row(ragged, 10, 1)) << "behind the end all is alike";
        }
    }
    // Far enough behind the end that no kernel of the convolutions, 11 and 11 of every second frame, reaches it.
    for (std::int64_t f = 0; f < 17; ++f) spectrogram[static_cast<std::size_t>((17 + f) * 21 + 20)] += 100;
    write("other.npy");
    const FloatArray other = logits("other");
    EXPECT_EQ(other.values, ragged.values);
}

TEST_F(DeepSpeech2Run, ItsRecurrentStepsHaveATimeStepForEveryOther) {
    const Result result = run();
    const Point& point = result.points.at(0);
    int recurrent = 0;
    for (const StepResult& step : point.steps) {
        recurrent += step.op == "lstm";
        EXPECT_EQ(step.time_steps, step.op == "lstm" ? std::optional<std::int64_t>(11) : std::nullopt)
            << step.layer << ": of 21 frames";
        if (step.op == "lstm") {
            EXPECT_DOUBLE_EQ(step.time_step_us().value(), step.device_us().value() / 11);
        }
    }
    EXPECT_GT(recurrent, 0);
    const Result again = parse_result(to_text(result), "again");
    for (std::size_t i = 0; i < point.steps.size(); ++i)
        EXPECT_EQ(again.points.at(0).steps.at(i).time_steps, point.steps[i].time_steps);
}

TEST_F(DeepSpeech2Run, ItsPointHasFramesAndACell) {
    const Result result = run();
    const Point& point = result.points.at(0);
    EXPECT_EQ(point.axes.count("frames"), 21);
    EXPECT_EQ(point.axes.text("cell"), "lstm");
    EXPECT_EQ(point.axes.find("seq"), nullptr);
    EXPECT_EQ(parse_result(to_text(result), "again").points.at(0).axes, point.axes);
    options_.values["cell"] = {"rnn"};
    EXPECT_EQ(run().points.at(0).axes.text("cell"), "rnn");
}

TEST_F(DeepSpeech2Run, InTrainingATextIsAsLongAsItsUtteranceAllows) {
    options_.values["direction"] = {"train"};
    options_.values["frames"] = {100};
    options_.dumps["losses"] = out_ / "losses.npy";
    set_lengths("100 50 6");
    const Result scaled = run();
    ASSERT_EQ(scaled.points.at(0).status, PointStatus::done) << scaled.points.at(0).reason;
    std::ifstream file(options_.out / "target-lengths-frames100-batch3.txt");
    EXPECT_EQ(std::vector<int>(std::istream_iterator<int>(file), {}), (std::vector<int>{15, 7, 0}));
    const std::vector<double> losses = read_npy_floats(out_ / "losses.npy").values;
    EXPECT_THAT(losses, testing::Each(testing::Lt(1e3))) << "15 labels have no alignment with 3 steps";

    std::ofstream(out_ / "given.txt") << "15 15 15";
    options_.inputs["target_lengths"] = out_ / "given.txt";
    const Result given = run();
    EXPECT_EQ(given.points.at(0).status, PointStatus::done) << "what is given is taken: " << given.points.at(0).reason;
    EXPECT_THAT(given.warnings, testing::Contains(HasSubstr("1 of 3 utterances have more labels")));
    EXPECT_EQ(read_npy_floats(out_ / "losses.npy").values.at(2), std::numeric_limits<double>::infinity());
}

/// By the kind of its op.
double useful_flops_of(const Point& point, std::string_view op) {
    double flops = 0;
    for (const StepResult& step : point.steps)
        if (step.op == op) flops += step.cost.flops;
    return flops;
}

TEST_F(DeepSpeech2Run, WhatIsComputedBehindAnUtteranceIsNotUseful) {
    const Result full = run();
    set_lengths("21 8 13");
    const Result ragged = run();
    const Point &all = full.points.at(0), &some = ragged.points.at(0);
    EXPECT_EQ(all.axes.text("lengths"), "full");
    EXPECT_EQ(all.axes.find("useful_frames"), nullptr);
    EXPECT_THAT(some.axes.text("lengths"), testing::MatchesRegex("file [0-9a-f]{8}"));
    EXPECT_EQ(some.axes.count("useful_frames"), 42);
    EXPECT_EQ(first_difference(all, some), &axis_named("lengths"));

    // The batch has 3 x 11 steps, and 11 + 4 + 7 of them belong to utterances.
    for (const char* op : {"gemm", "lstm"})
        EXPECT_EQ(useful_flops_of(some, op) * 33, useful_flops_of(all, op) * 22) << op;
    ASSERT_EQ(some.steps.size(), all.steps.size());
    double useful = 0, padding = 0;
    for (std::size_t i = 0; i < some.steps.size(); ++i) {
        const StepResult &one = some.steps[i], &other = all.steps[i];
        EXPECT_EQ(one.cost.flops + one.padding_flops, other.cost.flops + other.padding_flops) << one.layer;
        EXPECT_EQ(one.matrix_flops, other.matrix_flops) << "as it is launched";
        EXPECT_EQ(one.cost.bytes(), other.cost.bytes()) << "as it is read and written";
        if (other.cost.flops > 0) {
            EXPECT_LT(one.cost.flops, other.cost.flops) << one.layer;
        }
        useful += one.cost.flops;
        padding += one.padding_flops;
    }
    EXPECT_DOUBLE_EQ(some.cost.flops, useful);
    EXPECT_DOUBLE_EQ(some.padding_flops, padding);
    EXPECT_EQ(parse_result(to_text(ragged), "again").points.at(0).axes, some.axes);

    set_lengths("21 8 14");
    EXPECT_NE(run().points.at(0).axes.text("lengths"), some.axes.text("lengths"));
    set_lengths("21");
    EXPECT_EQ(run().points.at(0).cost.flops, all.cost.flops) << "full lengths of a file are full";
}

TEST_F(DeepSpeech2Run, DrawnLengthsAreRunAndLeftBehind) {
    options_.values["lengths"] = {"librispeech-like"};
    options_.values["frames"] = {40};
    options_.out = out_ / "drawn";
    const Point drawn = run().points.at(0);
    ASSERT_EQ(drawn.status, PointStatus::done) << drawn.reason;
    const std::vector<std::int32_t> lengths = librispeech_like(options_.seed, 3, 40);
    std::ifstream file(out_ / "drawn/lengths-frames40-batch3.txt");
    EXPECT_EQ(std::vector<std::int32_t>(std::istream_iterator<std::int32_t>(file), {}), lengths);
    EXPECT_EQ(drawn.axes.count("useful_frames"), std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
    options_.seed = 2;
    options_.out = out_ / "other";
    const Point other = run().points.at(0);
    EXPECT_NE(other.axes.text("lengths"), drawn.axes.text("lengths"));
    EXPECT_NE(first_difference(drawn, other), nullptr);

    options_.values.erase("lengths");
    options_.seed = 1;
    options_.inputs["lengths"] = out_ / "drawn/lengths-frames40-batch3.txt";
    EXPECT_EQ(run().points.at(0).cost.flops, drawn.cost.flops);
}

TEST_F(DeepSpeech2Run, ItsReportHasUtterancesAndFrames) {
    set_lengths("21 8 13");
    const Result result = run();
    const ExplainedResult explained(result);
    const std::string text = render_terminal({"", {section_called("figures", {explained})}}, 200);
    EXPECT_THAT(text, HasSubstr(" utterances/s, "));
    EXPECT_THAT(text, HasSubstr(" frames/s"));
    EXPECT_THAT(text, HasSubstr("42 of 63 (33.3 % are padding), 14.00 an utterance"));
}

TEST_F(DeepSpeech2Run, RefusesLengthsThatItsUtterancesCannotHave) {
    const auto refusal = [&](const std::string& lengths) {
        set_lengths(lengths);
        return error_line<UsageError>([&] { run(); });
    };
    EXPECT_THAT(refusal("21 22 3"), HasSubstr("lengths 1 is 22; it should be in [0, 22)"));
    EXPECT_THAT(refusal("21 -1 3"), HasSubstr("lengths 1 is -1"));
    EXPECT_THAT(refusal("21 8"), HasSubstr("2 of lengths; batch 3 needs 3, or 1 for all"));
    EXPECT_THAT(refusal("0 0 0"), HasSubstr("lengths are all 0"));
    EXPECT_THAT(refusal("21 8 x"), HasSubstr("lengths 2 is 'x'; it should be an integer"));
}

}  // namespace
}  // namespace kbench
