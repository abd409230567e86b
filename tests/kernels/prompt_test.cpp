// Keys and values of a prompt in their cache, and the last token's row, on the device, against the reference.
#include "kernels/prompt.h"

#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

class PromptOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    static void expect_exactly(const HostMatrix& made, std::span<const reference::Element> elements,
                               const std::vector<reference::Expected>& expected) {
        for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_EQ(made(elements[i].row, elements[i].column), expected[i].value)
                << "copied, or left alone: " << elements[i].row << ", " << elements[i].column;
    }

    /// `offset`: where the arrays begin, in elements from an aligned address.
    static void check(const FillCache& op, std::int64_t offset = 0) {
        SCOPED_TRACE(testing::Message() << op.text() << " offset " << offset);
        const DataType type = GetParam();
        const std::int64_t cached = op.batch * op.kv_heads * op.capacity, first_k = op.first_key_column();
        const auto qkv = HostMatrix::normal(type, op.batch * op.seq, op.qkv_width(), 1),
                   keys = HostMatrix::normal(type, cached, op.head_size, 2),
                   values = HostMatrix::normal(type, cached, op.head_size, 3);
        const DeviceMatrix device_qkv(qkv, offset), device_keys(keys, offset), device_values(values, offset);
        cuda::fill_cache(type, op, device_qkv.data(), device_keys.data(), device_values.data(), nullptr);
        const auto all = elements_of(cached, op.head_size, 1000000);
        expect_exactly(device_keys.download(), all, reference::filled_cache(op, qkv.view(), first_k, keys.view(), all));
        expect_exactly(device_values.download(), all,
                       reference::filled_cache(op, qkv.view(), first_k + op.kv_width(), values.view(), all));
    }
};

TEST_P(PromptOnDevice, FillsItsCache) {
    KBENCH_NEEDS_DEVICE();
    check({1, 20, 20, 100, 131, 64});
    for (const std::int64_t head_size : {1, 7, 33, 64, 80, 128})
        for (const std::int64_t kv_heads : {2, 4}) check({3, 4, kv_heads, 17, 21, head_size});
    check({2, 4, 4, 17, 17, 64}, 1);
}

TEST_P(PromptOnDevice, HasTheLastRowOfEachSequence) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    for (const LastToken& op : {LastToken{1, 1, 1}, {3, 5, 33}, {16, 7, 1280}, {2, 3, 5000}}) {
        SCOPED_TRACE(op.text());
        const auto x = HostMatrix::normal(type, op.batch * op.seq, op.width, 1);
        const DeviceMatrix device_x(x);
        const auto out = DeviceMatrix::poisoned(type, op.batch, op.width);
        cuda::last_token(type, op, device_x.data(), out.data(), nullptr);
        const auto all = elements_of(op.batch, op.width, 1000000);
        expect_exactly(out.download(), all, reference::last_token(op, x.view(), all));
    }
}

INSTANTIATE_TEST_SUITE_P(Types, PromptOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

}  // namespace
}  // namespace kbench::test
