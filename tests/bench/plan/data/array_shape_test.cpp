// Which shapes may serve as another, and what is said of those that may not.
#include "bench/plan/data/array_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kbench/error.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

TEST(ArrayShape, AxesOfOneMayBeMissingOrLead) {
    const Shape wanted{3, 1, 161, 20}, column{3, 1}, single{1, 1, 161, 20};
    for (const Shape& found : {wanted, Shape{3, 161, 20}, Shape{1, 3, 1, 161, 20}}) EXPECT_TRUE(fits(found, wanted));
    for (const Shape& found : {Shape{161, 20}, Shape{1, 161, 20}}) EXPECT_TRUE(fits(found, single));
    for (const Shape& found : {Shape{3}, Shape{3, 1}, Shape{1, 3, 1}}) EXPECT_TRUE(fits(found, column));
    EXPECT_TRUE(fits(Shape{}, Shape{1, 1})) << "a scalar";
}

TEST(ArrayShape, TheSameNumbersInOtherAxesDoNotFit) {
    const Shape wanted{3, 1, 161, 20};
    for (const Shape& found : {Shape{3, 1, 20, 161}, Shape{3, 20, 161}, Shape{3, 161, 1, 20}, Shape{9660},
                               Shape{3, 3220}, Shape{3, 1, 161, 20, 1}, Shape{2, 1, 161, 30}, Shape{}})
        EXPECT_FALSE(fits(found, wanted)) << shape_text(found);
    EXPECT_FALSE(fits(Shape{1, 3}, Shape{3, 1})) << "one row of three is not three rows of one";
    EXPECT_FALSE(fits(Shape{0, 3, 1}, Shape{3, 1}));
}

TEST(ArrayShape, SaysWhatHelps) {
    const Shape wanted{3, 1, 161, 20};
    EXPECT_EQ(why_it_does_not_fit(Shape{3, 1, 20, 161}, wanted), "numpy.transpose(x, (0, 1, 3, 2)) is that");
    EXPECT_EQ(why_it_does_not_fit(Shape{161, 20, 3, 1}, wanted), "numpy.transpose(x, (2, 3, 0, 1)) is that");
    EXPECT_EQ(why_it_does_not_fit(Shape{20, 3, 1, 161}, wanted), "numpy.transpose(x, (1, 2, 3, 0)) is that");
    EXPECT_EQ(why_it_does_not_fit(Shape{2, 2, 3, 4}, Shape{2, 3, 2, 4}), "numpy.transpose(x, (0, 2, 1, 3)) is that");
    EXPECT_EQ(why_it_does_not_fit(Shape{3, 20, 161}, wanted), "transpose it: its axes are in another order");
    EXPECT_EQ(why_it_does_not_fit(Shape{3, 1, 161, 30}, wanted), "axis 3 is 30 where 20 is wanted");
    EXPECT_EQ(why_it_does_not_fit(Shape{9660}, wanted), "it has 1 axes where 4 are wanted");
}

TEST(ArrayShape, ARefusalIsOneLineWithBothShapes) {
    const std::string line = error_line<UsageError>([] {
        require_shape("x.npy", "spectrogram", Shape{3, 1, 20, 161}, Shape{3, 1, 161, 20});
    });
    EXPECT_THAT(line, HasSubstr("x.npy: has shape (3, 1, 20, 161), but spectrogram needs (3, 1, 161, 20)"));
    require_shape("x.npy", "spectrogram", Shape{3, 161, 20}, Shape{3, 1, 161, 20});
}

}  // namespace
}  // namespace kbench
