// Bytes of what a prompt's step does beside a forward, counted by hand.
#include <gtest/gtest.h>

#include "kbench/error.h"
#include "models/cost.h"
#include "models/problem.h"

namespace kbench {
namespace {

/// Bytes in fp32 that the step of a shape reads and writes of a role.
std::pair<double, double> bytes_of(std::string_view op, std::string_view shape, Role role) {
    const Cost cost = step_cost(make_problem_model(parse_problem(op, shape), 1, 1), {0}, Precision::fp32);
    return {cost.bytes_read[static_cast<std::size_t>(role)], cost.bytes_written[static_cast<std::size_t>(role)]};
}

TEST(FillCache, ReadsKeysAndValuesAndWritesTheirRows) {
    const double key = 2 * 2 * 5 * 4;  // both sequences and kv heads
    EXPECT_EQ(bytes_of("fill_cache", "b2h6s3k10d5g2", Role::activations), std::pair(2 * 3 * key, 0.))
        << "queries are not read";
    EXPECT_EQ(bytes_of("fill_cache", "b2h6s3k10d5g2", Role::cache), std::pair(0., 2 * 3 * key));
    EXPECT_THROW(parse_problem("fill_cache", "b1h4s3k2d8"), UsageError) << "a prompt that its cache has no room for";
    EXPECT_THROW(parse_problem("fill_cache", "b1h4s3k3d8g3"), UsageError) << "query heads that no kv head serves";
}

TEST(LastToken, ReadsNoOtherRow) {
    EXPECT_EQ(bytes_of("last_token", "b2s3w5", Role::activations), std::pair(2. * 5 * 4, 2. * 5 * 4));
}

}  // namespace
}  // namespace kbench
