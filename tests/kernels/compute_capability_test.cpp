// Which paths kernels take where an older GPU's are asked for.
#include "kernels/compute_capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "kbench/error.h"
#include "kernels/probe/mma.h"
#include "kernels/recurrent/persistent/persistent.h"
#include "kernels/shared_memory.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::cuda {
namespace {

/// Sets the variable, and gives it back what it was.
class Assumed {
  public:
    explicit Assumed(const char* capability) {
        if (const char* before = std::getenv(assumed_capability_variable)) before_ = before;
        capability ? setenv(assumed_capability_variable, capability, 1) : unsetenv(assumed_capability_variable);
    }
    ~Assumed() {
        before_ ? setenv(assumed_capability_variable, before_->c_str(), 1) : unsetenv(assumed_capability_variable);
    }
    Assumed(const Assumed&) = delete;
    Assumed& operator=(const Assumed&) = delete;

  private:
    std::optional<std::string> before_;
};

TEST(ComputeCapabilityOf, AnOlderOneIsAssumedWhereItIsAskedFor) {
    const ComputeCapability hopper{9, 0};
    {
        const Assumed nothing(nullptr);
        EXPECT_EQ(assumed_capability(hopper), hopper);
    }
    const Assumed older("8.0");
    EXPECT_EQ(assumed_capability(hopper), (ComputeCapability{8, 0}));
    EXPECT_EQ(assumed_capability({8, 0}), (ComputeCapability{8, 0}));
}

TEST(ComputeCapabilityOf, ANewerOrUnknownOneIsRefused) {
    for (const char* text : {"10.0", "9.1", "8", "8.0 ", "", "80", "ampere"}) {
        const Assumed assumed(text);
        try {
            assumed_capability({9, 0});
            ADD_FAILURE() << "'" << text << "' was taken";
        } catch (const UsageError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("up to this GPU's 9.0, such as 8.0"));
        }
    }
}

TEST(ComputeCapabilityOf, AnA100sPathsAreTakenWhereItIsAssumed) {
    KBENCH_NEEDS_DEVICE();
    const Assumed older("8.0");
    EXPECT_EQ(shared_bytes_of_block(), 163 * 1024);
    EXPECT_EQ(shared_bytes_of_multiprocessor(), 164 * 1024);
    EXPECT_THAT(persistent_lstm_unsupported({DataType::fp16, {1, 1, 16}}), testing::HasSubstr("this is 8.0"));
}

TEST(ComputeCapabilityOf, ABuildForItHasNoNewerCode) {
    if (std::getenv(assumed_capability_variable) == nullptr)
        GTEST_SKIP() << "no older GPU is assumed (ctest --preset sm80)";
    KBENCH_NEEDS_DEVICE();
    EXPECT_STREQ(probe::mma_unsupported(probe::Mma::fp64_16x8x16), "needs code for compute capability 9.0");
}

}  // namespace
}  // namespace kbench::cuda
