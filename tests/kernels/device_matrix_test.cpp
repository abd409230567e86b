// The helper for tests on a device, and the proof that it notices what it is there to notice.
#include "tests/kernels/device_matrix.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "kernels/check.h"

namespace kbench::test {
namespace {

constexpr std::size_t guard_bytes = 4096;
constexpr auto guard_value = std::byte{0xa5};

void encode(DataType type, double value, std::byte* to) {
    const auto put = [to](auto encoded) { std::memcpy(to, &encoded, sizeof encoded); };
    switch (type) {
        case DataType::fp16: return put(__float2half_rn(static_cast<float>(value)));
        case DataType::bf16: return put(__float2bfloat16_rn(static_cast<float>(value)));
        case DataType::fp32: return put(static_cast<float>(value));
        case DataType::fp64: return put(value);
        case DataType::int32: return put(static_cast<std::int32_t>(value));
    }
}

}  // namespace

std::string why_no_device() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess) return std::string("no CUDA device: ") + cudaGetErrorString(status);
    return count > 0 ? "" : "no CUDA device";
}

Precision precision_of(DataType type) {
    constexpr Precision precisions[] = {Precision::fp16, Precision::bf16, Precision::fp32, Precision::fp64};
    return precisions[static_cast<int>(type)];
}

HostMatrix::HostMatrix(DataType element_type, std::int64_t row_count, std::int64_t column_count,
                       std::int64_t row_stride)
    : type(element_type),
      rows(row_count),
      columns(column_count),
      stride(row_stride ? row_stride : column_count),
      bytes(rows * stride * size_of(type)) {}

HostMatrix HostMatrix::normal(DataType type, std::int64_t rows, std::int64_t columns, unsigned seed, double deviation,
                              double mean, std::int64_t stride) {
    HostMatrix matrix(type, rows, columns, stride);
    std::mt19937 generator(seed);
    std::normal_distribution<double> distribution(mean, deviation);
    for (std::size_t at = 0; at < matrix.bytes.size(); at += size_of(type))
        encode(type, distribution(generator), matrix.bytes.data() + at);
    return matrix;
}

void HostMatrix::set(std::int64_t row, std::int64_t column, double value) {
    encode(type, value, bytes.data() + (row * stride + column) * size_of(type));
}

DeviceMatrix::DeviceMatrix(const HostMatrix& host, std::int64_t offset)
    : shape_(host), front_bytes_(guard_bytes + offset * size_of(host.type)) {
    const std::size_t total = front_bytes_ + host.bytes.size() + guard_bytes;
    KBENCH_CUDA(cudaMalloc(&memory_, total));
    KBENCH_CUDA(cudaMemset(memory_, std::to_integer<int>(guard_value), total));
    KBENCH_CUDA(cudaMemcpy(data(), host.bytes.data(), host.bytes.size(), cudaMemcpyHostToDevice));
}

DeviceMatrix DeviceMatrix::poisoned(DataType type, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                                    std::int64_t offset) {
    HostMatrix poison(type, rows, columns, stride);
    std::fill(poison.bytes.begin(), poison.bytes.end(), std::byte{0xff});
    return DeviceMatrix(poison, offset);
}

DeviceMatrix::~DeviceMatrix() { cudaFree(memory_); }

DeviceMatrix::DeviceMatrix(DeviceMatrix&& other) noexcept
    : shape_(std::move(other.shape_)),
      memory_(std::exchange(other.memory_, nullptr)),
      front_bytes_(other.front_bytes_) {}

void* DeviceMatrix::data() const { return memory_ + front_bytes_; }

HostMatrix DeviceMatrix::download() const {
    HostMatrix host = shape_;
    std::vector<std::byte> everything(front_bytes_ + host.bytes.size() + guard_bytes);
    KBENCH_CUDA(cudaDeviceSynchronize());
    KBENCH_CUDA(cudaMemcpy(everything.data(), memory_, everything.size(), cudaMemcpyDeviceToHost));
    const auto first = everything.begin() + static_cast<std::ptrdiff_t>(front_bytes_);
    const auto last = first + static_cast<std::ptrdiff_t>(host.bytes.size());
    const auto is_guard = [](std::byte b) { return b == guard_value; };
    EXPECT_TRUE(std::all_of(everything.begin(), first, is_guard)) << "memory before the matrix was written";
    EXPECT_TRUE(std::all_of(last, everything.end(), is_guard)) << "memory after the matrix was written";
    host.bytes.assign(first, last);
    return host;
}

std::vector<reference::Element> elements_of(std::int64_t rows, std::int64_t columns, std::size_t limit) {
    std::set<reference::Element> chosen;
    if (static_cast<std::size_t>(rows * columns) <= limit) {
        for (std::int64_t row = 0; row < rows; ++row)
            for (std::int64_t column = 0; column < columns; ++column) chosen.insert({row, column});
    } else {
        std::mt19937_64 generator(1);
        chosen = {{0, 0}, {0, columns - 1}, {rows - 1, 0}, {rows - 1, columns - 1}};
        while (chosen.size() < limit) {
            const auto row = static_cast<std::int64_t>(generator() % rows);
            chosen.insert({row, static_cast<std::int64_t>(generator() % columns)});
        }
    }
    return {chosen.begin(), chosen.end()};
}

void expect_agrees(const HostMatrix& computed, const std::vector<reference::Element>& elements,
                   const std::vector<reference::Expected>& expected, Precision precision) {
    ASSERT_EQ(elements.size(), expected.size());
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = elements.size(); i-- > 0;)
        if (!reference::agrees(computed(elements[i].row, elements[i].column), expected[i], precision, computed.type)) {
            ++wrong;
            first = i;
        }
    if (wrong == 0) return;
    const auto [row, column] = elements[first];
    ADD_FAILURE() << wrong << " of " << elements.size() << " elements are wrong, first [" << row << ", " << column
                  << "]: " << computed(row, column) << ", not " << expected[first].value << " +- "
                  << reference::error_bound(expected[first], precision, computed.type);
}

namespace {

TEST(DeviceMatrix, NoticesAWriteOneByteOutside) {
    KBENCH_NEEDS_DEVICE();
    const DeviceMatrix matrix = DeviceMatrix::poisoned(DataType::fp16, 3, 5);
    char* data = static_cast<char*>(matrix.data());
    KBENCH_CUDA(cudaMemset(data + 30, 0, 1));
    EXPECT_NONFATAL_FAILURE(matrix.download(), "after the matrix");
    KBENCH_CUDA(cudaMemset(data + 30, 0xa5, 1));
    KBENCH_CUDA(cudaMemset(data - 1, 0, 1));
    EXPECT_NONFATAL_FAILURE(matrix.download(), "before the matrix");
}

TEST(DeviceMatrix, APoisonedElementNeverAgrees) {
    HostMatrix computed(DataType::fp32, 1, 2);
    computed.set(0, 0, std::numeric_limits<double>::quiet_NaN());
    computed.set(0, 1, 1.0);
    EXPECT_NONFATAL_FAILURE(expect_agrees(computed, {{0, 0}, {0, 1}}, {{1.0, 1.0, 1}, {1.0, 1.0, 1}}, Precision::fp32),
                            "1 of 2 elements are wrong, first [0, 0]");
}

TEST(DeviceMatrix, EncodesWhatTheReferenceDecodes) {
    for (DataType type : {DataType::fp16, DataType::bf16, DataType::fp32, DataType::fp64, DataType::int32}) {
        HostMatrix matrix(type, 1, 1);
        for (double value : {0.0, 1.0, -3.0, 96.0}) {
            matrix.set(0, 0, value);
            EXPECT_EQ(matrix(0, 0), value) << name(type);
        }
    }
}

}  // namespace
}  // namespace kbench::test
