// The norm and the rotation of heads against the reference.
#include "kernels/rotary.h"

#include "kbench/error.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class RotaryOnDevice : public ::testing::TestWithParam<DataType> {};

TEST_P(RotaryOnDevice, TurnsHeadsByTheirPositionsAlsoInPlace) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    struct Shape {
        std::int64_t batch, heads, kv_heads, queries, past, size;
    };
    for (const Shape& s : {Shape{1, 2, 2, 1, 0, 64}, Shape{3, 32, 8, 1, 131071, 64}, Shape{2, 3, 1, 5, 300, 10},
                           Shape{2, 9, 3, 3, 40, 256}, Shape{1, 16, 8, 100, 0, 128}})
        for (const bool in_place : {false, true}) {
            const RotaryEmbedding op{s.batch,
                                     s.heads,
                                     s.kv_heads,
                                     s.queries,
                                     s.past,
                                     s.size,
                                     RotaryEmbedding::plain_frequencies(s.size, 500000),
                                     1.2};
            SCOPED_TRACE(testing::Message() << op.text() << " in_place " << in_place);
            const auto qkv = HostMatrix::normal(type, op.rows(), op.all_heads() * s.size, 1);
            HostMatrix positions(DataType::int32, s.batch, 1);
            for (std::int64_t b = 0; b < s.batch; ++b) positions.set(b, 0, static_cast<double>(s.past / (s.batch - b)));
            const DeviceMatrix device_qkv(qkv), device_positions(positions);
            const auto own = DeviceMatrix::poisoned(type, op.rows(), op.all_heads() * s.size);
            const DeviceMatrix& out = in_place ? device_qkv : own;
            cuda::rotary_embedding(type, op, device_qkv.data(),
                                   static_cast<const std::int32_t*>(device_positions.data()), out.data(), nullptr);
            const auto elements = elements_of(op.rows(), op.all_heads() * s.size);
            expect_agrees(out.download(), elements,
                          reference::rotary_embedding(op, qkv.view(), positions.view(), elements), precision_of(type));
        }
}

TEST_P(RotaryOnDevice, RefusesAHeadWiderThanItsTable) {
    KBENCH_NEEDS_DEVICE();
    const std::int64_t size = cuda::rotary_embedding_max_head_size + 2;
    const RotaryEmbedding op{1, 1, 1, 1, 0, size, RotaryEmbedding::plain_frequencies(size, 10000)};
    EXPECT_THROW(cuda::rotary_embedding(GetParam(), op, nullptr, nullptr, nullptr, nullptr), Unsupported);
}

TEST_P(RotaryOnDevice, NormalisesHeadsOfQueriesAndKeysAlsoInPlace) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const QkNorm& op :
         {QkNorm{1, 16, 8, 128}, QkNorm{3, 3, 1, 10}, QkNorm{7, 2, 2, 33}, QkNorm{100, 8, 2, 64, 1e-5}})
        for (const bool in_place : {false, true}) {
            SCOPED_TRACE(testing::Message() << op.text() << " in_place " << in_place);
            const std::int64_t width = op.all_heads() * op.head_size;
            const auto qkv = HostMatrix::normal(type, op.rows, width, 1),
                       q = HostMatrix::normal(type, 1, op.head_size, 2, 0.3, 1),
                       k = HostMatrix::normal(type, 1, op.head_size, 3, 0.3, 1);
            const DeviceMatrix device_qkv(qkv), device_q(q), device_k(k);
            const auto own = DeviceMatrix::poisoned(type, op.rows, width);
            const DeviceMatrix& out = in_place ? device_qkv : own;
            cuda::qk_norm(type, op, device_qkv.data(), device_q.data(), device_k.data(), out.data(), nullptr);
            const auto elements = elements_of(op.rows, width);
            expect_agrees(out.download(), elements, reference::qk_norm(op, qkv.view(), q.view(), k.view(), elements),
                          precision_of(type));
        }
}

INSTANTIATE_TEST_SUITE_P(Types, RotaryOnDevice,
                         testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& of) { return std::string(name(of.param)); });

}  // namespace
}  // namespace kbench::test
