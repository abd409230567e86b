// Every op that adds to gradients that are there, verified on a device by each provider that has it.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "bench/measure/point/verify.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {

/// Verifies them at odd and at even shapes.
inline std::vector<Step> accumulating_steps() {
    std::vector<Step> steps{
        Step::of(Gemm{100, 283, 64, false, true}, Direction::wgrad),
        Step::of(Gemm{1024, 256, 64, false, true}, Direction::wgrad),
        Step::of(Gemm{33, 130, 1283, true, true}, Direction::wgrad),
        Step::of(Gemm{33, 130, 256, true, true}, Direction::wgrad),
        Step::of(BiasAdd{1000, 283, true}, Direction::bwd),
        Step::of(BiasAdd{17, 256, true}, Direction::bwd),
        Step::of(LayerNorm{100, 96, 1e-5, true}, Direction::bwd),
        Step::of(LayerNorm{1000, 131, 1e-5, true}, Direction::bwd),
        Step{{LayerNorm{100, 96, 1e-5, true}, ResidualAdd{100, 96}}, 0, Direction::bwd},
        Step::of(RmsNorm{100, 131, 1e-6, true}, Direction::bwd),
        Step::of(Embedding{34, 17, 40, 97, 20, true, true}, Direction::bwd),
        Step::of(Embedding{34, 17, 41, 97, 17, true, true}, Direction::bwd),
        Step::of(Embedding{34, 17, 40, 97, 20, true, false}, Direction::bwd),
    };
    steps[3].padded_columns = 136;
    return steps;
}

inline void verify_accumulating_steps(Device& device) {
    const Providers providers = make_providers(device.kind(), {});
    for (const Step& step : accumulating_steps())
        for (const Precision precision : all_precisions) {
            int found = 0;
            for (const auto& provider : providers) {
                if (!provider->unsupported(step, precision).empty()) continue;
                SCOPED_TRACE(testing::Message() << provider->name << " " << op_name(step) << " " << shape_text(step)
                                                << " " << name(precision));
                const auto computation = provider->make(step, precision);
                EXPECT_NO_THROW(verify_step({&step, computation.get(), provider->name, "layer"}, precision, device, 1));
                ++found;
            }
            EXPECT_TRUE(found > 0 || precision == Precision::tf32) << op_name(step) << " " << name(precision);
        }
}

}  // namespace kbench
