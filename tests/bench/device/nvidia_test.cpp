// Why a machine computes on no GPU, from planted files of /sys, /proc and /dev and from CUDA's answers.
#include "bench/device/nvidia.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What CUDA answers where it finds no library of a driver.
const CudaAnswer no_library{.error = 35,
                            .name = "cudaErrorInsufficientDriver",
                            .text = "CUDA driver version is insufficient for CUDA runtime version",
                            .runtime = 13000};

CudaAnswer answer_of(int error, const std::string& name) {
    return {.error = error, .name = name, .text = "as CUDA says", .driver = 13000, .runtime = 13000};
}

class NvidiaMachine : public testing::Test {
  protected:
    void pci(const std::string& address, const std::string& vendor, const std::string& of_class,
             const std::string& driver = "") {
        const std::string folder = "sys/bus/pci/devices/" + address;
        root_.write(folder + "/vendor", vendor + "\n");
        root_.write(folder + "/class", of_class + "\n");
        if (!driver.empty()) fs::create_symlink("../../../drivers/" + driver, root_ / (folder + "/driver"));
    }
    void gpu() { pci("0000:65:00.0", "0x10de", "0x030200"); }
    void driver() {
        root_.write("proc/driver/nvidia/version",
                    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n");
    }
    void nodes() {
        root_.write("dev/nvidia0", "");
        root_.write("dev/nvidiactl", "");
    }
    NvidiaFiles files() const { return nvidia_files(root_ / ""); }
    NoGpu why(const CudaAnswer& answer, const char* visible = nullptr) const {
        const NoGpu none = why_no_gpu(files(), answer, visible);
        EXPECT_THAT(none.why, AllOf(Not(HasSubstr("\n")), Not(HasSubstr("insufficient"))));
        return none;
    }
    void expect(const NoGpu& none, bool present, const std::string& part) const {
        EXPECT_EQ(none.present, present) << none.why;
        EXPECT_THAT(none.why, HasSubstr(part));
    }

    TemporaryDirectory root_;
};

TEST_F(NvidiaMachine, ModelsAreWhatTheDriverSays) {
    EXPECT_TRUE(nvidia_models(root_ / "").empty());
    root_.write("proc/driver/nvidia/gpus/0000:65:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 7\n");
    root_.write("proc/driver/nvidia/gpus/0000:75:00.0/information", "Model:\nIRQ: 8\n");
    EXPECT_THAT(nvidia_models(root_ / ""), testing::ElementsAre("NVIDIA H200"));
}

TEST_F(NvidiaMachine, HasNoGpuWhereNoFileSaysSo) {
    pci("0000:00:02.0", "0x8086", "0x030000");
    pci("0000:01:00.1", "0x10de", "0x040300");  // a sound controller, as of a card that was taken out of the list
    EXPECT_FALSE(files().any());
    expect(why(no_library), false, "no NVIDIA driver is loaded");
    expect(why(answer_of(100, "cudaErrorNoDevice")), false, "no NVIDIA GPU");
    expect(why(answer_of(999, "cudaErrorUnknown")), false, "CUDA finds no GPU");
    expect(why({.built = false}), false, "built without CUDA");
}

TEST_F(NvidiaMachine, FindsGpusOnThePciBusWithTheirDrivers) {
    pci("0000:65:00.0", "0x10de", "0x030200");
    pci("0000:01:00.0", "0x10de", "0x030000", "nouveau");
    const NvidiaFiles found = files();
    ASSERT_EQ(found.gpus.size(), 2U);
    EXPECT_EQ(found.gpus[0].address, "0000:01:00.0");
    EXPECT_EQ(found.gpus[0].driver, "nouveau");
    EXPECT_EQ(found.gpus[1].driver, "");
    EXPECT_FALSE(found.driver);
}

TEST_F(NvidiaMachine, ReadsTheVersionOfEitherKindOfDriver) {
    driver();
    EXPECT_EQ(files().driver, "535.104.05");
    root_.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)\n");
    EXPECT_EQ(files().driver, "580.65.06");
    root_.write("proc/driver/nvidia/version", "\n");
    EXPECT_EQ(files().driver, "");
}

TEST_F(NvidiaMachine, WhoseDriverIsNotLoadedIsToldToLoadIt) {
    gpu();
    for (const CudaAnswer& answer :
         {no_library, answer_of(100, "cudaErrorNoDevice"), answer_of(999, "cudaErrorUnknown")})
        expect(why(answer), true, "an NVIDIA GPU (0000:65:00.0), but no NVIDIA driver is loaded: install it");
    pci("0000:65:00.0", "0x10de", "0x030200", "nouveau");
    expect(why(no_library), true, "is loaded (nouveau has the GPU)");
}

TEST_F(NvidiaMachine, WhoseDriverHasNoLibraryHereIsAContainerWithoutGpus) {
    gpu(), driver();
    expect(why(no_library), true, "NVIDIA driver 535.104.05 is loaded, but its library libcuda.so.1 is not found");
    expect(why(no_library), true, "--gpus all");
    expect(why(answer_of(100, "cudaErrorNoDevice")), true, "there is no /dev/nvidia0");
}

TEST_F(NvidiaMachine, WithAnOldDriverIsToldWhichItNeeds) {
    gpu(), driver(), nodes();
    CudaAnswer old = no_library;
    old.driver = 12020;
    expect(
        why(old), true,
        "the NVIDIA driver 535.104.05 supports CUDA 12.2 at the most, this kbench was built with 13.0: update the driver (580 or newer)");
    EXPECT_THAT(why(old).why, Not(HasSubstr("build kbench")));  // no CUDA of its age does
    old.driver = 12080;
    expect(why(old), true, "or build kbench with CUDA 12.6 to 12.8");
    old.driver = 12020;
    old.runtime = 12060;
    expect(why(old), true, "(560 or newer)");
}

TEST_F(NvidiaMachine, WhoseGpuThisProcessMayNotOpenNamesTheFile) {
    gpu(), driver(), nodes();
    fs::create_symlink("nowhere", root_ / "dev/nvidia-uvm");  // whoever runs the tests: root may open any file
    expect(why(answer_of(100, "cudaErrorNoDevice")), true, "may not use the NVIDIA GPU: /dev/nvidia-uvm: ");
    expect(why(answer_of(304, "cudaErrorOperatingSystem")), true, "/dev/nvidia-uvm: ");
}

TEST_F(NvidiaMachine, WhoseGpuIsLostIsToldWhereToLook) {
    gpu(), driver(), nodes();
    expect(why(answer_of(100, "cudaErrorNoDevice")), true, "dmesg | grep NVRM");
    expect(why(answer_of(3, "cudaErrorInitializationError")), true, "(cudaErrorInitializationError: as CUDA says)");
    expect(why(answer_of(999, "cudaErrorUnknown")), true, "nvidia-uvm");
}

TEST_F(NvidiaMachine, OfWhichCudaSaysMoreThanThatThereIsNoneIsToldWhatHelps) {
    gpu(), driver(), nodes();
    for (const CudaErrorAdvice& row : cuda_error_advice())
        expect(why(answer_of(row.error, std::string(row.name))), true, std::string(row.advice));
}

TEST_F(NvidiaMachine, ThatCudaAloneKnowsIsOneWithAGpu) {
    expect(why(answer_of(802, "cudaErrorSystemNotReady")), true, "nvidia-fabricmanager");
    expect(why(answer_of(34, "cudaErrorStubLibrary")), false, "CUDA finds no GPU");  // a stub lies anywhere
}

TEST_F(NvidiaMachine, OfWindowsHasAGpuThatNoFileOfLinuxNames) {
    root_.write("usr/lib/wsl/lib/libcuda.so.1", "");
    EXPECT_TRUE(files().any());
    expect(why({.built = false}), true, "built without CUDA");
}

TEST_F(NvidiaMachine, WhoseUserHidesTheGpuHasNone) {
    gpu(), driver(), nodes();
    for (const char* hidden : {"", " ", "-1"})
        for (const CudaAnswer& answer : {no_library, answer_of(100, "cudaErrorNoDevice"), CudaAnswer{.built = false}})
            expect(why(answer, hidden), false, "CUDA_VISIBLE_DEVICES='" + std::string(hidden) + "' hides all GPUs");
    // A number that no GPU has is a mistake, and no wish.
    expect(why(answer_of(100, "cudaErrorNoDevice"), "7"), true, "CUDA_VISIBLE_DEVICES='7' names no GPU");
    expect(why(answer_of(100, "cudaErrorNoDevice"), "NoDevFiles"), true, "names no GPU");
}

TEST_F(NvidiaMachine, WithAGpuButABuildWithoutCudaIsToldToBuildAgain) {
    gpu(), driver(), nodes();
    expect(why({.built = false}), true, "an NVIDIA GPU (0000:65:00.0), but this kbench was built without CUDA");
}

}  // namespace
}  // namespace kbench
