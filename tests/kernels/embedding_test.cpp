// Token and position embedding against the reference.
#include <algorithm>
#include <random>
#include <set>

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
            const Embedding op{rows, seq, width, vocab, seq};
            const auto wte = HostMatrix::normal(type, vocab, width, 1), wpe = HostMatrix::normal(type, seq, width, 2);
            HostMatrix tokens(DataType::int32, 1, rows);
            std::mt19937 generator(3);
            for (std::int64_t row = 0; row < rows; ++row)
                tokens.set(0, row, row == 0 ? vocab - 1 : static_cast<double>(generator() % vocab));
            const DeviceMatrix device_tokens(tokens), device_wte(wte), device_wpe(wpe);
            const auto out = DeviceMatrix::poisoned(type, rows, width);
            cuda::embedding_forward(type, op, static_cast<const std::int32_t*>(device_tokens.data()), device_wte.data(),
                                    device_wpe.data(), out.data(), nullptr);
            const auto elements = elements_of(rows, width);
            expect_agrees(out.download(), elements,
                          reference::embedding(op, tokens.view(), wte.view(), wpe.view(), elements),
                          precision_of(type));
        }
}

TEST_P(EmbeddingOnDevice, AddsTheRowsOfGivenPositions) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 34, vocab = 97, table = 53;
    for (const std::int64_t seq : {1, 2})
        for (const std::int64_t width : {7, 1280}) {
            SCOPED_TRACE(testing::Message() << "seq " << seq << " width " << width);
            const EmbeddingAt op{rows, seq, width, vocab, table};
            const auto wte = HostMatrix::normal(type, vocab, width, 1), wpe = HostMatrix::normal(type, table, width, 2);
            HostMatrix tokens(DataType::int32, 1, rows), positions(DataType::int32, rows / seq, 1);
            for (std::int64_t row = 0; row < rows; ++row) tokens.set(0, row, static_cast<double>(row * 31 % vocab));
            for (std::int64_t i = 0; i < rows / seq; ++i)
                positions.set(i, 0, static_cast<double>(table - seq - i * 7 % 40));
            const DeviceMatrix device_tokens(tokens), device_positions(positions), device_wte(wte), device_wpe(wpe);
            const auto out = DeviceMatrix::poisoned(type, rows, width);
            cuda::embedding_at(type, op, static_cast<const std::int32_t*>(device_tokens.data()),
                               static_cast<const std::int32_t*>(device_positions.data()), device_wte.data(),
                               device_wpe.data(), out.data(), nullptr);
            const auto elements = elements_of(rows, width);
            expect_agrees(
                out.download(), elements,
                reference::embedding_at(op, tokens.view(), positions.view(), wte.view(), wpe.view(), elements),
                precision_of(type));
        }
}

TEST_P(EmbeddingOnDevice, OfTokensAloneCopiesTheirRows) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    constexpr std::int64_t rows = 34, vocab = 97;
    for (const std::int64_t width : {7, 2048, 5120}) {
        const TokenEmbedding op{rows, width, vocab};
        const auto table = HostMatrix::normal(type, vocab, width, 1);
        HostMatrix tokens(DataType::int32, 1, rows);
        for (std::int64_t row = 0; row < rows; ++row) tokens.set(0, row, static_cast<double>((row * 31 + 96) % vocab));
        const DeviceMatrix device_tokens(tokens), device_table(table);
        const auto out = DeviceMatrix::poisoned(type, rows, width);
        cuda::token_embedding(type, op, static_cast<const std::int32_t*>(device_tokens.data()), device_table.data(),
                              out.data(), nullptr);
        const auto elements = elements_of(rows, width);
        expect_agrees(out.download(), elements, reference::token_embedding(op, tokens.view(), table.view(), elements),
                      precision_of(type));
    }
}

/// Runs backward twice, and compares the first result with the reference and the second with the first.
void check_gradient(DataType type, const Embedding& op, std::int64_t distinct, std::int64_t offset = 0) {
    SCOPED_TRACE(testing::Message() << op.text() << " of " << distinct << " distinct tokens, offset " << offset);
    const auto dout = HostMatrix::normal(type, op.rows, op.width, 1),
               before = HostMatrix::normal(type, op.vocab, op.width, 2),
               before_positions = HostMatrix::normal(type, op.positions, op.width, 4);
    HostMatrix tokens(DataType::int32, 1, op.rows);
    std::mt19937 generator(3);
    for (std::int64_t row = 0; row < op.rows; ++row) {
        const std::int64_t any = static_cast<std::int64_t>(generator()) % distinct * 7919 % op.vocab;
        tokens.set(0, row, static_cast<double>(distinct >= op.rows ? row * 31 % op.vocab : any));
    }
    const DeviceMatrix device_tokens(tokens), device_dout(dout, offset);
    const DeviceMatrix workspace(HostMatrix(DataType::int32, 1, op.vocab));
    ASSERT_EQ(cuda::embedding_gradient_workspace(type, op), static_cast<std::size_t>(4 * op.vocab));
    const auto run = [&] {
        const auto dwte =
            op.accumulates ? DeviceMatrix(before, offset) : DeviceMatrix::poisoned(type, op.vocab, op.width, 0, offset);
        const auto dwpe = op.accumulates_positions ? DeviceMatrix(before_positions, offset)
                                                   : DeviceMatrix::poisoned(type, op.positions, op.width, 0, offset);
        cuda::embedding_gradient(type, op, static_cast<const std::int32_t*>(device_tokens.data()), device_dout.data(),
                                 dwte.data(), dwpe.data(), workspace.data(), nullptr);
        return std::vector<HostMatrix>{dwte.download(), dwpe.download()};
    };
    const std::vector<HostMatrix> made = run(), again = run();
    EXPECT_EQ(made[0].bytes, again[0].bytes);
    EXPECT_EQ(made[1].bytes, again[1].bytes);
    workspace.download();  // its guards
    // Whole rows, of tokens that occur and of others: they share the reference's search.
    std::set<std::int64_t> chosen;
    for (std::int64_t v = 0; v < op.vocab; v += std::max<std::int64_t>(1, op.vocab / 97)) chosen.insert(v);
    for (std::int64_t row = 0; row < op.rows; row += std::max<std::int64_t>(1, op.rows / 50))
        chosen.insert(static_cast<std::int64_t>(tokens(0, row)));
    std::vector<reference::Element> of_wte;
    for (const std::int64_t v : chosen)
        for (std::int64_t c = 0; c < op.width; ++c) of_wte.push_back({v, c});
    expect_agrees(made[0], of_wte, reference::embedding_dwte(op, tokens.view(), dout.view(), before.view(), of_wte),
                  precision_of(type));
    const auto of_wpe = elements_of(op.positions, op.width);
    auto of_positions = reference::embedding_dwpe(op, dout.view(), of_wpe);
    if (op.accumulates_positions)
        of_positions = reference::added_to(before_positions.view(), of_wpe, std::move(of_positions));
    expect_agrees(made[1], of_wpe, of_positions, precision_of(type));
}

TEST_P(EmbeddingOnDevice, GradientAddsUpTheRowsOfEachToken) {
    KBENCH_NEEDS_DEVICE();
    for (const bool accumulates : {false, true})
        for (const std::int64_t distinct : {1, 2, 64, 1000000})
            for (const std::int64_t width : {1, 8, 100, 264, 1280, 1283, 5120}) {
                check_gradient(GetParam(), {1, 1, width, 97, 3, accumulates, accumulates}, distinct);
                check_gradient(GetParam(), {340, 17, width, 97, 17, accumulates}, distinct);
            }
}

TEST_P(EmbeddingOnDevice, GradientOfManyRowsOfFewAndOfManyTokens) {
    KBENCH_NEEDS_DEVICE();
    for (const bool accumulates : {false, true})
        for (const std::int64_t distinct : {1, 64, 3000, 1000000})
            check_gradient(GetParam(), {8192, 1024, 1280, 12289, 1024, accumulates}, distinct);
    check_gradient(GetParam(), {4096, 1024, 64, 5000, 1025, false}, 300);
}

TEST_P(EmbeddingOnDevice, GradientOfUnalignedRows) {
    KBENCH_NEEDS_DEVICE();
    check_gradient(GetParam(), {340, 17, 1280, 97, 17, false}, 20, 1);
    check_gradient(GetParam(), {340, 17, 100, 97, 17, true}, 20, 3);
    check_gradient(GetParam(), {340, 17, 100, 97, 19, true, true}, 20, 3);
}

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
