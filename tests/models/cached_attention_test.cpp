// Shapes, work and bytes of attention over a cache, counted by hand.
#include "models/ops/cached_attention.h"

#include <gtest/gtest.h>

#include "kbench/error.h"
#include "models/cost.h"
#include "models/problem.h"

namespace kbench {
namespace {

CachedAttention over_cache(std::string_view shape) {
    return parse_problem("cached_attention", shape).as<CachedAttention>();
}

TEST(CachedAttention, IsWrittenAsItIsRead) {
    for (const char* shape : {"b1h20q1k1024d64", "b16h32q1k4096d128g8", "b2h6q3k10d5g2w4"})
        EXPECT_EQ(over_cache(shape).text(), shape);
    EXPECT_EQ(over_cache("b1h32g8q1k4096d128").past, 4095);
    EXPECT_EQ(over_cache("b1h32g8q1k4096d128").group(), 4);
    EXPECT_EQ(over_cache("b1h4q2k2d8").past, 0) << "no token came before";
    EXPECT_THROW(over_cache("b1h4g3q1k9d8"), UsageError) << "query heads that no kv head serves";
    EXPECT_THROW(over_cache("b1h4q3k2d8"), UsageError) << "new tokens are among the keys";
}

TEST(CachedAttention, CountsThePairsThatAreVisible) {
    // Two sequences, six heads; three queries see 8, 9 and 10 keys.
    EXPECT_EQ(Op(over_cache("b2h6q3k10d5")).work(Direction::fwd).flops, 2 * 6 * (27 * 24 + 3 * 5));
    EXPECT_EQ(Op(over_cache("b2h6q3k10d5g2")).work(Direction::fwd).flops, 2 * 6 * (27 * 24 + 3 * 5))
        << "a group computes as much as heads of their own";
    EXPECT_EQ(Op(over_cache("b2h6q3k10d5w9")).work(Direction::fwd).flops, 2 * 6 * (26 * 24 + 3 * 5));
    EXPECT_EQ(Op(over_cache("b2h6q3k10d5w1")).work(Direction::fwd).flops, 2 * 6 * (3 * 24 + 3 * 5)) << "each itself";
}

/// Bytes in fp32 that the step of a shape reads and writes of a role.
std::pair<double, double> bytes_over_cache(std::string_view shape, Role role) {
    const Model model = make_problem_model(parse_problem("cached_attention", shape), 1, 1);
    const Cost cost = step_cost(model, {0}, Precision::fp32);
    return {cost.bytes_read[static_cast<std::size_t>(role)], cost.bytes_written[static_cast<std::size_t>(role)]};
}

TEST(CachedAttention, ReadsTheCacheOnceAndWritesTheNewRows) {
    const auto of = [](std::string_view shape, Role role) { return bytes_over_cache(shape, role); };
    const double key = 2 * 2 * 5 * 4;  // both sequences and kv heads
    EXPECT_EQ(of("b2h6q3k10d5g2", Role::cache), std::pair(2 * 7 * key, 2 * 3 * key)) << "keys and values";
    EXPECT_EQ(of("b2h6q3k10d5g2", Role::activations), std::pair(2. * 3 * (6 + 2 * 2) * 5 * 4, 2. * 3 * 6 * 5 * 4))
        << "the new ones are read as part of qkv";
    EXPECT_EQ(of("b2h6q3k10d5g2", Role::tokens).first, 2 * 4) << "a position for each sequence";
    EXPECT_EQ(of("b2h6q3k10d5g2w4", Role::cache).first, 2 * 3 * key) << "the first new token sees three before it";
    EXPECT_EQ(of("b2h6q3k3d5g2", Role::cache).first, 0) << "nothing came before";
}

}  // namespace
}  // namespace kbench
