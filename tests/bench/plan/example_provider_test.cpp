// The provider that docs/adding-a-provider.md shows, compiled from there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/device/device.h"
#include "bench/measure/point/verify.h"
#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "models/gpt2.h"
#include "models/ops/list.h"

namespace kbench {

std::unique_ptr<Provider> make_openmp(const ProviderContext&);

namespace {

TEST(ExampleProvider, ComputesTheEmbeddingOfAModelRightly) {
    const auto device = make_cpu_device();
    auto providers = make_providers(BackendKind::cpu, {});
    providers.push_back(make_openmp({}));
    Gpt2Config config{"tiny", 72, 2, 4};
    config.vocab_size = 101;
    const Model model = make_gpt2(config, 2, 9, AttentionKind::fused);
    for (const Precision precision : {Precision::fp32, Precision::fp64}) {
        const auto steps = assign_steps(model, precision, providers, {{"embedding", "openmp"}}, 1);
        ASSERT_EQ(steps.front().provider->name, "openmp");
        const Step& step = steps.front().step;
        const auto computation = steps.front().provider->make(step, precision);
        const VerifiedStep verified = verify_step({&step, computation.get(), "openmp", ""}, precision, *device, 1);
        EXPECT_EQ(verified.implementation, "openmp::embedding");
        EXPECT_EQ(verified.elements_checked, 18 * 72);
    }
}

TEST(ExampleProvider, RefusesWhatItHasNot) {
    const auto provider = make_openmp({});
    const Embedding op{8, 8, 8, 8, 8};
    EXPECT_EQ(provider->unsupported(Step::of(Softmax{8, 8, false}), Precision::fp32), "has no softmax");
    EXPECT_EQ(provider->unsupported(Step::of(op), Precision::fp16), "has no embedding in fp16");
    EXPECT_EQ(provider->unsupported(Step::of(op), Precision::fp64), "");
}

}  // namespace
}  // namespace kbench
