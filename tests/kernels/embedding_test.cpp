// Token and position embedding against the reference.
#include <random>

#include "kernels/embedding.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class EmbeddingOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(EmbeddingOnDevice, AddsTheRowsOfTokenAndPosition) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t vocab = 997, seq = 7;
    for (const std::int64_t rows : {1, 17, 1000})
        for (const std::int64_t width : {1, 64, 100, 1280, 1283, 5120}) {
            SCOPED_TRACE(testing::Message() << "rows " << rows << " width " << width);
            const auto wte = HostMatrix::normal(type, vocab, width, 1), wpe = HostMatrix::normal(type, seq, width, 2);
            HostMatrix tokens(DataType::int32, 1, rows);
            std::mt19937 generator(3);
            for (std::int64_t row = 0; row < rows; ++row)
                tokens.set(0, row, row == 0 ? vocab - 1 : static_cast<double>(generator() % vocab));
            const DeviceMatrix device_tokens(tokens), device_wte(wte), device_wpe(wpe);
            const auto out = DeviceMatrix::poisoned(type, rows, width);
            cuda::embedding_forward(type, static_cast<const std::int32_t*>(device_tokens.data()), device_wte.data(),
                                    device_wpe.data(), out.data(), rows, seq, width, nullptr);
            const auto elements = elements_of(rows, width);
            expect_agrees(
                out.download(), elements,
                reference::embedding({rows, seq, width, vocab, seq}, tokens.view(), wte.view(), wpe.view(), elements),
                precision_of(type));
        }
}

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
