// Inputs as people save them, whose shape is not the model's: each was once read as if it were.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "bench/plan/data/npy.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::HasSubstr;

class InputsCases : public Program {
  protected:
    std::string speech(const std::string& spectrogram) {
        const std::string cases = KBENCH_SOURCE_DIR "/tests/bench/cases/spectrogram-time-first/";
        return "--config " + cases + "config.json --weights " + cases + "model.safetensors --lengths " + cases +
               "lengths.txt --input spectrogram=" + spectrogram +
               " --frames 20 --batch 3 --precision fp64 --backend cpu --latency-only --quick --time-budget 0.1 --ceilings none --dump-output logits=" +
               logits().string() + " --out " + (directory_ / "run").string();
    }
    std::filesystem::path logits() { return directory_ / "logits.npy"; }
    std::filesystem::path time_first() {
        return KBENCH_SOURCE_DIR "/tests/bench/cases/spectrogram-time-first/x_time_freq.npy";
    }
};

TEST_F(InputsCases, ASpectrogramWithTimeFirstIsRefusedWithBothShapes) {
    expect_refusal(
        speech(time_first().string()),
        "has shape (3, 1, 20, 161), but spectrogram needs (3, 1, 161, 20): numpy.transpose(x, (0, 1, 3, 2))");
}

TEST_F(InputsCases, TransposedAsItWasToldItGivesWhatNumPyComputes) {
    const FloatArray x = read_npy_floats(time_first());
    std::vector<double> right(x.values.size());
    for (std::size_t n = 0; n < 3; ++n)
        for (std::size_t t = 0; t < 20; ++t)
            for (std::size_t f = 0; f < 161; ++f) right[(n * 161 + f) * 20 + t] = x.values[(n * 20 + t) * 161 + f];
    const std::vector<std::int64_t> shape{3, 161, 20};  // without the channel, which is one
    write_npy(directory_ / "x.npy", shape, DataType::fp64, right.data(), 20);
    const Outcome outcome = kbench(speech((directory_ / "x.npy").string()));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const FloatArray got = read_npy_floats(logits()),
                     want = read_npy_floats(KBENCH_SOURCE_DIR
                                            "/tests/bench/cases/spectrogram-time-first/want_of_right_order.npy");
    ASSERT_EQ(got.values.size(), want.values.size());
    // The spectrogram's file has fp32. kbench's two implementations agree to 1e-16 on it, and with NumPy's to 5.4e-9.
    for (std::size_t i = 0; i < want.values.size(); ++i) ASSERT_NEAR(got.values[i], want.values[i], 1e-8) << i;
}

TEST_F(InputsCases, EveryArrayIsHeldAgainstTheShapeOfItsInput) {
    const std::vector<double> numbers(12, 0.5);
    const std::vector<std::int64_t> shape{4, 3};
    write_npy(directory_ / "x.npy", shape, DataType::fp64, numbers.data(), 3);
    const std::string mlp = directory_.write("mlp.json", R"({"model_type": "mlp", "sizes": [4, 2]})").string();
    expect_refusal("--config " + mlp + " --batch 3 --backend cpu --quick --ceilings none --input inputs=" +
                       (directory_ / "x.npy").string() + " --out " + (directory_ / "mlp").string(),
                   "has shape (4, 3), but inputs needs (3, 4): numpy.transpose(x, (1, 0)) is that");

    const std::vector<std::int32_t> tokens(12, 1);
    write_npy(directory_ / "t.npy", shape, DataType::int32, tokens.data(), 3);
    expect_refusal("--config " + tiny() + " --batch 3 --seq 4 --backend cpu --quick --tokens " +
                       (directory_ / "t.npy").string() + " --out " + (directory_ / "gpt2").string(),
                   "has shape (4, 3)");
    write_npy(directory_ / "lengths.npy", std::vector<std::int64_t>{1, 3}, DataType::int32, tokens.data(), 3);
    const std::string cases = KBENCH_SOURCE_DIR "/tests/bench/cases/spectrogram-time-first/";
    expect_refusal("--config " + cases + "config.json --frames 20 --batch 3 --backend cpu --quick --ceilings none " +
                       "--lengths " + (directory_ / "lengths.npy").string() + " --out " +
                       (directory_ / "lengths").string(),
                   "has shape (1, 3), but lengths needs (3, 1)");
}

TEST_F(InputsCases, NumbersOfAnotherTypeAreRefusedInOneLine) {
    const std::vector<std::int32_t> integers(9660, 1);
    write_npy(directory_ / "x.npy", std::vector<std::int64_t>{3, 1, 161, 20}, DataType::int32, integers.data(), 20);
    expect_refusal(speech((directory_ / "x.npy").string()), "elements of type '<i4'");
}

}  // namespace
}  // namespace kbench
