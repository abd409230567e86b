// RMS norm agrees with the reference in every stored type, written through the caches and past them.
#include "cpu/native/rmsnorm.h"

#include <omp.h>

#include <cstring>

#include "cpu/native/streamed.h"
#include "tests/cpu/matrix.h"

namespace kbench::cpu {
namespace {

using test::Case;
using test::elements;
using test::expect_agrees;
using test::Matrix;
using test::precision_of;
using test::Workspace;

constexpr double epsilon = 1e-5;

class RmsNorm : public testing::TestWithParam<Case> {
  protected:
    DataType type = GetParam().type;
    std::int64_t rows = GetParam().rows, width = GetParam().width;
    kbench::RmsNorm op{rows, width, epsilon};
    std::int64_t size = static_cast<std::int64_t>(size_of(type)), bytes = rows * width * size;
    Matrix x = Matrix::normal(type, rows, width, 1), weight = Matrix::normal(type, 1, width, 2);
    std::vector<reference::Element> chosen = elements(rows, width, 1, width < 100 ? 1 : 7);
    std::vector<reference::Expected> expected = reference::rms_norm(op, x.view(), weight.view(), chosen);

    /// With the output `offset` elements past a line's beginning.
    void check(std::int64_t offset, std::int64_t stream_above_bytes) const {
        SCOPED_TRACE(testing::Message() << "offset " << offset << ", streamed above " << stream_above_bytes);
        const auto before = static_cast<std::size_t>(offset * size), count = static_cast<std::size_t>(bytes);
        Workspace memory(before + count);
        auto* out = static_cast<std::byte*>(memory.data()) + before;
        rms_norm(type, op, x.data(), weight.data(), out, stream_above_bytes);
        Matrix computed(type, rows, width);
        std::memcpy(computed.data(), out, count);
        expect_agrees(computed, chosen, expected, precision_of(type));
        for (std::size_t i = 0; i < before; ++i)
            ASSERT_EQ(static_cast<unsigned char*>(memory.data())[i], 0xff) << "written before the output, at " << i;
    }
};

TEST_P(RmsNorm, HoldsAtTheSizeThatIsStillWrittenThroughTheCaches) { check(0, bytes); }
TEST_P(RmsNorm, HoldsAtTheSizeThatIsWrittenPastTheCaches) { check(0, bytes - 1); }
TEST_P(RmsNorm, HoldsAndWritesNothingElseWhereNoRowBeginsALine) {
    for (const std::int64_t offset : {1, 7}) {
        check(offset, bytes);
        check(offset, bytes - 1);
    }
}

TEST_P(RmsNorm, GradientHoldsAlsoOverDyAndWhateverTheThreads) {
    const Matrix dy = Matrix::normal(type, rows, width, 3);
    const auto columns = elements(1, width, 1, width < 100 ? 1 : 7);
    const auto run = [&] {
        std::vector<Matrix> made{dy, Matrix::poisoned(type, 1, width)};
        Workspace workspace(rms_norm_gradient_workspace(type, op));
        rms_norm_gradient(type, op, x.data(), made[0].data(), weight.data(), made[0].data(), made[1].data(),
                          workspace.data());
        return made;
    };
    const std::vector<Matrix> made = run();
    expect_agrees(made[0], chosen, reference::rms_norm_dx(op, x.view(), dy.view(), weight.view(), chosen),
                  precision_of(type));
    expect_agrees(made[1], columns, reference::rms_norm_dw(op, x.view(), dy.view(), columns), precision_of(type));
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    EXPECT_EQ(run(), made);
    omp_set_num_threads(threads);
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64})
        for (std::int64_t rows : {1, 3, 50})
            for (std::int64_t width : {1, 7, 1280, 4099}) all.push_back({type, rows, width});
    return all;
}
INSTANTIATE_TEST_SUITE_P(Shapes, RmsNorm, testing::ValuesIn(cases()));

TEST(RmsNormSize, AnOutputBeyondTheCachesIsTheSame) {
    const std::int64_t width = 4096, rows = 3, bytes = rows * width * 4;
    const kbench::RmsNorm op{rows, width, epsilon};
    const Matrix x = Matrix::normal(DataType::fp32, rows, width, 1),
                 weight = Matrix::normal(DataType::fp32, 1, width, 2);
    Matrix usual = Matrix::poisoned(DataType::fp32, rows, width), streamed = usual, chosen = usual;
    rms_norm(DataType::fp32, op, x.data(), weight.data(), usual.data(), bytes);
    rms_norm(DataType::fp32, op, x.data(), weight.data(), streamed.data(), 0);
    rms_norm(DataType::fp32, op, x.data(), weight.data(), chosen.data());
    EXPECT_EQ(usual, streamed);
    EXPECT_EQ(usual, chosen);
}

TEST(Streamed, OneElementAtATimeFillsEveryLine) {
    for (const std::int64_t offset : {0, 4, 60}) {
        std::vector<std::uint32_t> memory(1 + 300, 0);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        // The first element whose address is `offset` past a line, within the first 17.
        const std::size_t first = ((static_cast<std::uintptr_t>(offset) + 64 - address % 64) % 64) / 4;
        {
            Streamed out(memory.data() + first);
            for (std::uint32_t i = 1; i <= 200; ++i) {
                *out.room<std::uint32_t>() = i;
                out.written(4);
            }
        }
        for (std::size_t i = 0; i < memory.size(); ++i)
            ASSERT_EQ(memory[i], i < first || i >= first + 200 ? 0 : i - first + 1) << offset << " " << i;
    }
}

TEST(LastLevelCaches, AreLargerThanAChunk) { EXPECT_GT(last_level_cache_bytes(), chunk_bytes); }

}  // namespace
}  // namespace kbench::cpu
