// Attention over a cache on the device, against the reference at ragged positions: with groups, several new tokens,
// windows, and head sizes that end within a vector.
#include <cmath>

#include "kbench/error.h"
#include "kernels/attention/cached.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

/// In batch, heads, kv_heads, queries, past, head_size, window.
CachedAttention over_cache(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
                           std::int64_t past, std::int64_t head_size, std::int64_t window = 0) {
    return {batch, heads, kv_heads, queries, past, head_size, window, 1 / std::sqrt(static_cast<double>(head_size))};
}

class CachedAttentionOnDevice : public ::testing::TestWithParam<DataType> {
  protected:
    /// The last sequence has the whole past, those before it ever less. `offset`: where qkv and the caches begin, in
    /// elements from an aligned address.
    static void check(const CachedAttention& op, std::int64_t offset = 0) {
        SCOPED_TRACE(testing::Message() << op.text() << " offset " << offset);
        const DataType type = GetParam();
        const std::int64_t cached = op.batch * op.kv_heads * op.keys(), rows = op.batch * op.queries,
                           width = op.heads * op.head_size, first_k = width,
                           first_v = first_k + op.kv_heads * op.head_size;
        const auto qkv = HostMatrix::normal(type, rows, op.qkv_width(), 1),
                   keys = HostMatrix::normal(type, cached, op.head_size, 2),
                   values = HostMatrix::normal(type, cached, op.head_size, 3);
        HostMatrix positions(DataType::int32, op.batch, 1);
        for (std::int64_t b = 0; b < op.batch; ++b) positions.set(b, 0, static_cast<double>(op.past / (op.batch - b)));
        const DeviceMatrix device_qkv(qkv, offset), device_positions(positions);
        const DeviceMatrix workspace(HostMatrix(
            DataType::int32, 1, static_cast<std::int64_t>(cuda::cached_attention_workspace(type, op) + 7) / 4));
        const auto run = [&] {
            const DeviceMatrix device_keys(keys, offset), device_values(values, offset);
            const auto out = DeviceMatrix::poisoned(type, rows, width);
            cuda::cached_attention(type, op, device_qkv.data(), device_keys.data(), device_values.data(),
                                   static_cast<const std::int32_t*>(device_positions.data()), out.data(),
                                   workspace.data(), nullptr);
            return std::vector<HostMatrix>{out.download(), device_keys.download(), device_values.download()};
        };
        const std::vector<HostMatrix> made = run(), again = run();
        for (std::size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i].bytes, again[i].bytes) << i;
        workspace.download();  // its guards
        const auto elements = elements_of(rows, width, 4000), of_cache = elements_of(cached, op.head_size, 1000000);
        expect_agrees(
            made[0], elements,
            reference::cached_attention(op, qkv.view(), keys.view(), values.view(), positions.view(), elements),
            precision_of(type));
        const auto of_keys =
                       reference::cache_with_new(op, qkv.view(), first_k, keys.view(), positions.view(), of_cache),
                   of_values =
                       reference::cache_with_new(op, qkv.view(), first_v, values.view(), positions.view(), of_cache);
        for (std::size_t i = 0; i < of_cache.size(); ++i) {
            const auto [row, column] = of_cache[i];
            ASSERT_EQ(made[1](row, column), of_keys[i].value) << "copied, or left alone: " << row << ", " << column;
            ASSERT_EQ(made[2](row, column), of_values[i].value) << row << ", " << column;
        }
    }
};

TEST_P(CachedAttentionOnDevice, SeesTheCacheAndTheNewTokens) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t past : {0, 1, 63, 1000})
        for (const std::int64_t group : {1, 4, 8})
            for (const std::int64_t queries : {1, 3})
                for (const std::int64_t head_size : {64, 80, 128})
                    check(over_cache(3, 2 * group, 2, queries, past, head_size));
}

TEST_P(CachedAttentionOnDevice, SeesTheKeysOfItsWindowAlone) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t window : {1, 64, 200, 5000})
        for (const std::int64_t queries : {1, 3}) check(over_cache(3, 8, 2, queries, 1000, 64, window));
}

TEST_P(CachedAttentionOnDevice, TakesHeadsOfAnySizeAndAlignment) {
    KBENCH_NEEDS_DEVICE();
    for (const std::int64_t head_size : {1, 7, 33, 96, 160, 255, 256}) check(over_cache(2, 4, 2, 2, 300, head_size));
    check(over_cache(2, 4, 2, 1, 300, 64), 1);
}

/// One sequence of few heads is split into many parts, many sequences into one.
TEST_P(CachedAttentionOnDevice, SplitsAsManyKeysAsItTakesToFillTheDevice) {
    KBENCH_NEEDS_DEVICE();
    const DataType type = GetParam();
    EXPECT_GT(cuda::cached_attention_workspace(type, over_cache(1, 20, 20, 1, 1023, 64)), 0U);
    EXPECT_EQ(cuda::cached_attention_workspace(type, over_cache(512, 20, 20, 1, 100, 64)), 0U);
    check(over_cache(1, 20, 20, 1, 1023, 64));
    check(over_cache(1, 1, 1, 1, 20000, 64));
    check(over_cache(512, 20, 20, 1, 100, 64));
    check(over_cache(1, 2, 2, 37, 100, 64));
}

INSTANTIATE_TEST_SUITE_P(Types, CachedAttentionOnDevice,
                         ::testing::Values(DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(CachedAttentionLimits, RefuseLargerHeads) {
    try {
        cuda::cached_attention_workspace(DataType::fp16, over_cache(1, 1, 1, 1, 9, 257));
        FAIL() << "a head of 257 columns was accepted";
    } catch (const Unsupported& reason) {
        EXPECT_NE(std::string(reason.what()).find("257"), std::string::npos) << reason.what();
    }
}

}  // namespace
}  // namespace kbench::test
