// Which device a command line chooses, on machines that are not here.
#include "bench/command/device_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/bench/refusal.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;

const NoGpu no_driver{true, "the driver is not loaded"}, no_card{false, "no NVIDIA GPU is here"};

DeviceRequest request_of(const std::string& backend, const std::string& gpu = "", int multiprocessors = 0) {
    return {.backend = backend, .gpu = gpu, .multiprocessors = multiprocessors};
}

TEST(Backend, IsTheGpuWhereThereIsOne) {
    EXPECT_EQ(backend_for(request_of("auto"), std::nullopt), BackendKind::cuda);
    EXPECT_EQ(backend_for(request_of("auto", "1", 66), std::nullopt), BackendKind::cuda);
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
    EXPECT_EQ(error(request_of("auto", "1"), no_card), "--device 1: no usable GPU: no NVIDIA GPU is here");
    EXPECT_EQ(error(request_of("auto", "", 66), no_card), "--sms 66: no usable GPU: no NVIDIA GPU is here");
}

TEST(Backend, OfACpuTakesNoOptionsOfAGpu) {
    for (const DeviceRequest& request : {request_of("cpu", "0"), request_of("cpu", "", 66)})
        EXPECT_THAT(refusal_of([&] { backend_for(request, std::nullopt); }), HasSubstr("leave out"));
}

class Gpus : public testing::Test {
  protected:
    Gpus() {
        for (const char* uuid :
             {"GPU-8f2a1111-0000-0000-0000-000000000000", "GPU-8f2b2222-0000-0000-0000-000000000000"}) {
            gpus_.emplace_back().name = "NVIDIA H100";
            gpus_.back().uuid = uuid;
        }
    }
    std::string refusal(const std::string& wanted) const {
        return refusal_of([&] { gpu_named(wanted, gpus_); });
    }
    std::vector<GpuInfo> gpus_;
};

TEST_F(Gpus, AreNamedByNumberOrUuid) {
    EXPECT_EQ(gpu_named("", gpus_), current_gpu);
    EXPECT_EQ(gpu_named("0", gpus_), 0);
    EXPECT_EQ(gpu_named("1", gpus_), 1);
    EXPECT_EQ(gpu_named(gpus_[1].uuid, gpus_), 1);
    EXPECT_EQ(gpu_named("GPU-8f2b", gpus_), 1);
    EXPECT_EQ(gpu_named("GPU-8F2A", gpus_), 0);
    EXPECT_EQ(gpu_named("MIG-8f2a", gpus_), 0);
}

TEST_F(Gpus, ThatAreNotThereOrSeveralAreRefusedWithAllThereAre) {
    const std::string all =
        "there are 0 (NVIDIA H100, GPU-8f2a1111-0000-0000-0000-000000000000), 1 (NVIDIA H100, GPU-8f2b2222-0000-0000-0000-000000000000)";
    EXPECT_EQ(refusal("2"), "--device 2: there is no such GPU; " + all);
    EXPECT_EQ(refusal("00"), "--device 00: there is no such GPU; " + all);
    EXPECT_EQ(refusal("GPU-9"), "--device GPU-9: there is no such GPU; " + all);
    EXPECT_EQ(refusal("GPU-8f2"), "--device GPU-8f2: several GPUs begin so; " + all);
}

TEST_F(Gpus, HaveNumbersOrUuidsForNames) {
    for (const char* name : {"0", "17", "99999999999999999999", "GPU-8", "MIG-8f2a"})
        EXPECT_EQ(parse_gpu_name(name), name);
    for (const char* name : {"", "-1", "1,2", "GPU-", "gpu0", "H100", "0x1", "cuda:0"})
        EXPECT_THAT(refusal_of([&] { parse_gpu_name(name); }), HasSubstr("such as 1 or GPU-8f2a"));
}

}  // namespace
}  // namespace kbench
