// Where the input and the result of a test on a device lie, for kernels that take any alignment and may work in place.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/kernels/device_matrix.h"

namespace kbench::test {

/// Where input and result lie: so many elements past a 256-byte boundary; in place, the result is where the input is.
struct Place {
    std::int64_t offset_in = 0, offset_out = 0;
    bool in_place = false;
};
inline constexpr Place places[] = {{}, {1, 1}, {0, 1}, {3, 0}, {.in_place = true}, {.offset_in = 5, .in_place = true}};

/// Runs `run(x, out)` on the device and compares the elements that elements_of chooses with reference(elements).
template <class Run, class Reference>
void check_at(const HostMatrix& x, const Place& place, std::int64_t out_rows, std::int64_t out_columns, Run run,
              Reference reference) {
    SCOPED_TRACE(testing::Message() << "offsets " << place.offset_in << ", " << place.offset_out << " in place "
                                    << place.in_place);
    const DeviceMatrix device_x(x, place.offset_in);
    const auto own = DeviceMatrix::poisoned(x.type, out_rows, out_columns, 0, place.offset_out);
    const DeviceMatrix& out = place.in_place ? device_x : own;
    run(device_x.data(), out.data());
    const auto elements = elements_of(out_rows, out_columns);
    expect_agrees(out.download(), elements, reference(elements), precision_of(x.type));
    if (!place.in_place) {
        EXPECT_EQ(device_x.download().bytes, x.bytes) << "x was written";
    }
}

}  // namespace kbench::test
