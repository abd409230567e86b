// What verification asks of masked and of twice rounded values. That it finds wrong kernels: run_test,
// user_kernel_test.
#include "bench/measure/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/measure/device_rows.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

class VerifyStep : public testing::Test {
  protected:
    VerifiedStep verify(const StepKind& kind, const Computation& computation, Precision precision) {
        return verify_step({&kind, &computation, "test", "layer"}, precision, *device_, 1);
    }
    /// `kind` as kbench's own CPU kernels compute it.
    static std::unique_ptr<Computation> native(const StepKind& kind, Precision precision) {
        for (const auto& provider : make_providers(BackendKind::cpu, {}))
            if (provider->name() == "native") return provider->make(kind, precision);
        return nullptr;
    }

    std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_F(VerifyStep, MaskedScoresAreMinusInfinityAndNothingElse) {
    const AttentionShape shape{1, 2, 8, 16};
    const StepKind kind = ScaleMask{shape, 0.25, false};
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16}) {
        const VerifiedStep verified = verify(kind, *native(kind, precision), precision);
        EXPECT_EQ(verified.elements_checked, 2 * 8 * 8) << name(precision);
    }
    const auto finite = make_computation("finite", [](OperandCursor in, void*, void*) {
        auto* scores = in.next<float>();
        for (int row = 0; row < 2 * 8; ++row)
            for (int column = 0; column < 8; ++column)
                scores[row * 8 + column] = column > row % 8 ? -1e30f : 0.25f * scores[row * 8 + column];
    });
    EXPECT_THAT(error_line<MeasurementError>([&] { verify(kind, *finite, Precision::fp32); }),
                testing::HasSubstr("the reference says -inf"));
}

/// A softmax in fp64 whose results are all too large by `units` of the last place's half.
std::unique_ptr<Computation> softmax_off_by(double units, int roundings) {
    const auto run = [units](OperandCursor in, void*, void*) {
        const auto* scores = in.next<const double>();
        auto* out = in.next<double>();
        for (int row = 0; row < 4; ++row) {
            long double sum = 0;
            for (int i = 0; i < 16; ++i) sum += std::exp(static_cast<long double>(scores[row * 16 + i]));
            for (int i = 0; i < 16; ++i) {
                const long double right = std::exp(static_cast<long double>(scores[row * 16 + i])) / sum;
                out[row * 16 + i] = static_cast<double>(right * (1 + units * unit_roundoff(DataType::fp64)));
            }
        }
    };
    return make_computation("softmax", run, roundings);
}

/// A sum that is right but for one element of the last row.
std::unique_ptr<Computation> sum_with(float last_element, std::int64_t count) {
    return make_computation("sum", [=](OperandCursor in, void*, void*) {
        const auto* x = in.next<const float>();
        const auto* residual = in.next<const float>();
        auto* out = in.next<float>();
        for (std::int64_t i = 0; i < count; ++i) out[i] = x[i] + residual[i];
        if (last_element != 0) out[count - 7] = last_element;
    });
}

TEST_F(VerifyStep, OutputsOfADeviceAreSeenWhole) {
    OtherDevice device;
    device.apart = true;
    // 68 MB of output, so more than a slab.
    constexpr std::int64_t rows = 17'000, width = 1'000;
    const StepKind kind = ResidualAdd{rows, width};
    const auto verdict = [&](float last_element) {
        const auto computation = sum_with(last_element, rows * width);
        return verify_step({&kind, computation.get(), "test", "layer"}, Precision::fp32, device, 1);
    };
    EXPECT_GT(verdict(0).elements_checked, 4000);
    EXPECT_LE(device.largest_download, static_cast<std::size_t>(slab_bytes));
    EXPECT_THAT(error_line<MeasurementError>([&] { verdict(std::nanf("")); }),
                testing::HasSubstr("out[16999, 993] was not written, or is not a number"));
}

TEST_F(VerifyStep, FurtherRoundingsWidenTheBound) {
    const StepKind kind = Softmax{4, 16, false};
    const double bound_of_one = verify(kind, *softmax_off_by(0, 1), Precision::fp64).bound_there;
    ASSERT_GT(bound_of_one, 0);
    // The first error that one rounding does not allow, to within a rounding of its own.
    double units = 1;
    while (true) {
        try {
            verify(kind, *softmax_off_by(units, 1), Precision::fp64);
        } catch (const MeasurementError&) {
            break;
        }
        ++units;
        ASSERT_LT(units, 1000) << "no error is too large";
    }
    EXPECT_NO_THROW(verify(kind, *softmax_off_by(units, 3), Precision::fp64));
    EXPECT_THROW(verify(kind, *softmax_off_by(units + 4, 3), Precision::fp64), MeasurementError);
}

}  // namespace
}  // namespace kbench
