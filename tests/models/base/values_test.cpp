// Values that people type.
#include "models/base/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(Seconds, AreWrittenWithTheirUnitOrBare) {
    const std::pair<const char*, double> times[] = {{"450us", 450e-6}, {"31ms", 0.031}, {"1.5s", 1.5},  {"10", 10},
                                                    {"8m", 480},       {"1.5h", 5400},  {"20ns", 20e-9}};
    for (const auto& [text, value] : times) EXPECT_DOUBLE_EQ(seconds("--budget", text, "1ns"), value) << text;
}

TEST(Seconds, ThatAreNoneOrTooFewAreRefused) {
    for (const char* wrong : {"", "ms", "-1ms", "0", "nan", "inf", "1e999s", "1e308h", "1 ms", "1min", "1S", "9ms"}) {
        try {
            seconds("--budget", wrong, "10ms", ", or none");
            ADD_FAILURE() << wrong;
        } catch (const UsageError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("must be a time of at least 10ms, such as 31ms, 1.5s, 8m or "
                                                         "10 for seconds, or none"));
        }
    }
}

}  // namespace
}  // namespace kbench
