// Which device a command line chooses, on machines that are not here.
#include "bench/command/device_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

const NoGpu no_driver{true, "the driver is not loaded"}, no_card{false, "no NVIDIA GPU is here"};

DeviceRequest request_of(const std::string& backend, int multiprocessors = 0) {
    return {.backend = backend, .multiprocessors = multiprocessors};
}

TEST(Backend, IsTheGpuWhereThereIsOne) {
    EXPECT_EQ(backend_for(request_of("auto"), std::nullopt), BackendKind::cuda);
    EXPECT_EQ(backend_for(request_of("auto", 66), std::nullopt), BackendKind::cuda);
    EXPECT_EQ(backend_for(request_of("cpu"), std::nullopt), BackendKind::cpu);
}

TEST(Backend, IsTheCpuOnlyWhereNoGpuIsMeant) {
    EXPECT_EQ(backend_for(request_of("auto"), no_card), BackendKind::cpu);
    EXPECT_EQ(backend_for(request_of("cpu"), no_driver), BackendKind::cpu);
    const auto error = [](const DeviceRequest& request, const NoGpu& none) {
        return error_line<DeviceError>([&] { backend_for(request, none); });
    };
    EXPECT_EQ(error(request_of("auto"), no_driver),
              "no usable GPU: the driver is not loaded; or measure the CPU with --backend cpu");
    EXPECT_EQ(error(request_of("cuda"), no_card), "no usable GPU: no NVIDIA GPU is here");
    EXPECT_EQ(error(request_of("auto", 66), no_card), "--sms 66: no usable GPU: no NVIDIA GPU is here");
}

TEST(Backend, OfACpuTakesNoOptionsOfAGpu) {
    for (const DeviceRequest& request : {request_of("cpu", 66)})
        EXPECT_THAT(refusal_of([&] { backend_for(request, std::nullopt); }), HasSubstr("leave out"));
}

}  // namespace
}  // namespace kbench
