#include "analysis/facts/point_facts.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(LayerGroup, ReplacesWholeNumbersAlone) {
    EXPECT_EQ(layer_group("h.12.attn.c_attn"), "h.*.attn.c_attn");
    EXPECT_EQ(layer_group("9"), "*");
    EXPECT_EQ(layer_group("conv1.0.weight2"), "conv1.*.weight2");
    EXPECT_EQ(layer_group("h.1a.0"), "h.1a.*");
    EXPECT_EQ(layer_group("a..b"), "a..b");
    EXPECT_EQ(layer_group("ln_f"), "ln_f");
    EXPECT_EQ(layer_group("a..1"), "a..*");
    EXPECT_EQ(layer_group(""), "");
}

TEST(KindOf, IsWhatStandsBehindTheLayer) { EXPECT_EQ(kind_of("h.0.mlp:gelu"), "gelu"); }

}  // namespace
}  // namespace kbench
