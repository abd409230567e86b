// Matrices for tests on a device: random numbers in any stored type, device memory between guard bytes, and comparison
// with the reference.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/reference/reference.h"
#include "kbench/precision.h"

namespace kbench::test {

/// Why no test can use a device here; empty when one can.
std::string why_no_device();

/// At the start of a test that needs a device.
#define KBENCH_NEEDS_DEVICE() \
    if (const std::string reason = ::kbench::test::why_no_device(); !reason.empty()) GTEST_SKIP() << reason

/// The precision that a native kernel on `type` computes in.
Precision precision_of(DataType type);

/// A row-major matrix on the host; rows are `stride` elements apart.
struct HostMatrix {
    DataType type;
    std::int64_t rows, columns, stride;
    std::vector<std::byte> bytes;

    HostMatrix(DataType type, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0);
    /// Seeded normal numbers, padding included.
    static HostMatrix normal(DataType type, std::int64_t rows, std::int64_t columns, unsigned seed,
                             double deviation = 1, double mean = 0, std::int64_t stride = 0);
    void set(std::int64_t row, std::int64_t column, double value);
    double operator()(std::int64_t row, std::int64_t column) const { return view()(row, column); }
    reference::View view() const { return {bytes.data(), type, rows, columns, stride}; }
};

/// A copy of a matrix on the device, `offset` elements past a 256-byte boundary, between guard bytes.
class DeviceMatrix {
  public:
    explicit DeviceMatrix(const HostMatrix& host, std::int64_t offset = 0);
    /// Memory for a result: every element is NaN until it is written.
    static DeviceMatrix poisoned(DataType type, std::int64_t rows, std::int64_t columns, std::int64_t stride = 0,
                                 std::int64_t offset = 0);
    ~DeviceMatrix();
    DeviceMatrix(DeviceMatrix&&) noexcept;
    void* data() const;
    /// Waits for the device, checks the guards and returns what is there now.
    HostMatrix download() const;

  private:
    HostMatrix shape_;
    std::byte* memory_ = nullptr;
    std::size_t front_bytes_;
};

/// Every element, or `limit` of them chosen at random together with the corners; sorted by row.
std::vector<reference::Element> elements_of(std::int64_t rows, std::int64_t columns, std::size_t limit = 20000);

/// Fails unless every element is within the reference's bound for `precision`; the message shows the first that is not.
void expect_agrees(const HostMatrix& computed, const std::vector<reference::Element>& elements,
                   const std::vector<reference::Expected>& expected, Precision precision);

}  // namespace kbench::test
