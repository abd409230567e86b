// Which ceiling is the roof of what.
#include "analysis/machine/ceilings.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/analysis/explain/known_points.h"

namespace kbench {
namespace {

using known::ceiling;

/// Every kind that is measured on one backend, each with another value: its place in the list.
Result with_all(const std::string& backend) {
    Result result;
    result.points.emplace_back().set("backend", backend);
    double value = 0;
    for (const CeilingKind& kind : ceiling_kinds()) {
        ++value;
        if (kind.backend == backend && kind.is_measured)
            result.ceilings.ceilings.push_back(ceiling(std::string(kind.name), value));
    }
    return result;
}

std::string named(const std::optional<Roof>& roof) { return roof ? roof->ceiling : "none"; }

TEST(CeilingKinds, AreDistinctAndHaveAUnit) {
    std::set<std::string_view> names;
    for (const CeilingKind& kind : ceiling_kinds()) {
        EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
        EXPECT_TRUE(kind.unit == "GB/s" || kind.unit == "TFLOP/s" || kind.unit == "Ginst/s" || kind.unit == "us")
            << kind.name;
        EXPECT_TRUE(kind.backend == "cuda" || kind.backend == "cpu") << kind.name;
        EXPECT_EQ(&ceiling_kind(kind.name), &kind);
    }
    EXPECT_THROW(ceiling_kind("dram"), std::out_of_range);
}

struct UnitCase {
    std::string backend;
    Precision precision;
    std::string matrix, plain;
};
class Units : public testing::TestWithParam<UnitCase> {};

TEST_P(Units, AreThoseThatTheStepCouldUse) {
    const UnitCase& c = GetParam();
    const Roofs roofs(with_all(c.backend));
    EXPECT_EQ(named(roofs.matrix(c.precision)), c.matrix);
    EXPECT_EQ(named(roofs.plain(c.precision)), c.plain);
}
TEST(Roofs, OfMmaSyncStandForItsKernelsWhereTheyWereMeasured) {
    const Roofs apart(with_all("cuda"));
    EXPECT_EQ(named(apart.matrix_by_mma_sync(Precision::fp16)), "fp16_mma_sync");
    EXPECT_EQ(named(apart.matrix_by_mma_sync(Precision::tf32)), "tf32_mma_sync");
    EXPECT_EQ(named(apart.matrix_by_mma_sync(Precision::fp64)), "fp64_tensor") << "has no other instruction";
    EXPECT_EQ(named(apart.matrix_by_mma_sync(Precision::fp32)), "fp32_plain");
    Result older;
    older.ceilings.ceilings.push_back(ceiling("fp16_tensor", 900));
    EXPECT_EQ(named(Roofs(older).matrix_by_mma_sync(Precision::fp16)), "fp16_tensor");
    EXPECT_EQ(named(Roofs(with_all("cpu")).matrix_by_mma_sync(Precision::fp16)), "avx512_fp16");
}

INSTANTIATE_TEST_SUITE_P(Roofs, Units,
                         testing::Values(UnitCase{"cuda", Precision::fp16, "fp16_tensor", "fp32_plain"},
                                         UnitCase{"cuda", Precision::bf16, "bf16_tensor", "fp32_plain"},
                                         UnitCase{"cuda", Precision::tf32, "tf32_tensor", "fp32_plain"},
                                         UnitCase{"cuda", Precision::fp32, "fp32_plain", "fp32_plain"},
                                         UnitCase{"cuda", Precision::fp64, "fp64_tensor", "fp64_plain"},
                                         UnitCase{"cpu", Precision::fp16, "avx512_fp16", "avx512_fp32"},
                                         UnitCase{"cpu", Precision::bf16, "amx_bf16", "avx512_fp32"},
                                         UnitCase{"cpu", Precision::tf32, "none", "avx512_fp32"},
                                         UnitCase{"cpu", Precision::fp32, "avx512_fp32", "avx512_fp32"},
                                         UnitCase{"cpu", Precision::fp64, "avx512_fp64", "avx512_fp64"}),
                         [](const auto& c) { return c.param.backend + "_" + std::string(name(c.param.precision)); });

TEST(Roofs, TakeTheBestOfAlternatives) {
    Result gpu;
    gpu.points.emplace_back().set("backend", "cuda");
    gpu.ceilings.ceilings = {ceiling("dram_triad", 4200, 0), ceiling("dram_copy", 4300, 0), ceiling("dram_read", 4100),
                             ceiling("fp64_plain", 30), ceiling("fp64_tensor", 29)};
    EXPECT_EQ(named(Roofs(gpu).bandwidth(Level::dram)), "dram_copy");
    EXPECT_EQ(named(Roofs(gpu).matrix(Precision::fp64)), "fp64_plain");

    Result cpu;
    cpu.points.emplace_back().set("backend", "cpu");
    cpu.ceilings.ceilings = {
        ceiling("avx2_fp32", 2),        ceiling("avx512_fp32", 1.5),   ceiling("avx512_fp32_one_core", 9),
        ceiling("cpu_dram_triad", 250), ceiling("cpu_dram_read", 200), ceiling("cpu_dram_read_one_core", 900),
        ceiling("avx512_bf16", 3),      ceiling("amx_bf16", 2)};
    EXPECT_EQ(named(Roofs(cpu).matrix(Precision::fp32)), "avx2_fp32");
    EXPECT_EQ(named(Roofs(cpu).matrix(Precision::bf16)), "avx512_bf16");
    EXPECT_EQ(named(Roofs(cpu).bandwidth(Level::dram)), "cpu_dram_triad");
}

TEST(Roofs, OfEachLevel) {
    const Roofs gpu(with_all("cuda")), cpu(with_all("cpu"));
    EXPECT_EQ(named(gpu.bandwidth(Level::l2)), "l2_read");
    EXPECT_EQ(named(gpu.bandwidth(Level::l1)), "l1_read");
    EXPECT_EQ(named(cpu.bandwidth(Level::l2)), "none");
    EXPECT_EQ(named(cpu.bandwidth(Level::l1)), "none");
}

TEST(Roofs, AreInBytesAndFlopsASecond) {
    const Result result = known::result_of({});
    const Roofs roofs(result);
    EXPECT_EQ(roofs.bandwidth(Level::dram)->per_s, 1000e9);
    EXPECT_EQ(roofs.matrix(Precision::fp16)->per_s, 100e12);
    EXPECT_EQ(roofs.matrix(Precision::fp16)->clock_mhz, known::clock_mhz);
    EXPECT_EQ(roofs.matrix(Precision::fp16)->origin, Origin::measured);
    EXPECT_EQ(roofs.latency_us("graph_node"), 1);
    EXPECT_EQ(roofs.value("dram_copy"), 900);
    EXPECT_EQ(roofs.value("grid_barrier"), std::nullopt);
    EXPECT_EQ(roofs.unavailable(), "");
}

TEST(Roofs, SkipWhatCouldNotBeMeasured) {
    Result result;
    result.points.emplace_back().set("backend", "cpu");
    result.ceilings.ceilings = {ceiling("avx2_fp32", 2)};
    result.ceilings.ceilings.push_back(ceiling("avx512_fp32", 9));
    result.ceilings.ceilings.back().value = Quantity::unavailable("no AVX-512");
    EXPECT_EQ(named(Roofs(result).matrix(Precision::fp32)), "avx2_fp32");
    EXPECT_EQ(Roofs(result).value("avx512_fp32"), std::nullopt);
}

TEST(Roofs, ReadBetweenTheSamplesAreTheirMedian) {
    Result result;
    result.ceilings.ceilings = {ceiling("cpu_dram_read", 100), ceiling("cpu_dram_triad", 90), ceiling("avx2_fp32", 2)};
    const Roofs machine(result, "cpu");
    Conditions conditions;
    conditions.roofs = {{"cpu_dram_read", {50, 20, 60, 54, 56}}, {"avx2_fp32", {1, 1}}, {"of no machine", {7, 7, 7}}};
    const Roofs during = machine.during(conditions);
    EXPECT_EQ(named(during.bandwidth(Level::dram)), "cpu_dram_triad") << "which was not read";
    const Roof read = during.roof("cpu_dram_read").value();
    EXPECT_EQ(read.per_s, 54e9);
    EXPECT_EQ(read.low_per_s, 50e9) << "the lower quartile";
    EXPECT_EQ(read.high_per_s, 60e9) << "the fastest";
    EXPECT_EQ(during.value("avx2_fp32"), 2) << "two readings are too few";
    EXPECT_EQ(Roofs(result.ceilings, "cuda").during(conditions).value("cpu_dram_read"), 100) << "a GPU's stay";
    EXPECT_EQ(machine.value("cpu_dram_read"), 100);
    EXPECT_EQ(machine.during({}).value("cpu_dram_read"), 100);
}

TEST(Roofs, OfAResultWithoutPointsAreOfTheBackendThatIsNamed) {
    Result result;
    result.ceilings.ceilings = {ceiling("cpu_dram_read", 100), ceiling("dram_copy", 2000)};
    EXPECT_EQ(named(Roofs(result, "cpu").bandwidth(Level::dram)), "cpu_dram_read");
    EXPECT_EQ(named(Roofs(result, "cuda").bandwidth(Level::dram)), "dram_copy");
    EXPECT_EQ(Roofs(result, "cpu").backend(), "cpu");
}

TEST(Roofs, OfAResultWithoutAnySayWhy) {
    Result result;
    result.points.emplace_back().set("backend", "cuda");
    EXPECT_EQ(Roofs(result).unavailable(), "the result has no ceilings");
    result.ceilings.unavailable = "--no-ceilings";
    EXPECT_EQ(Roofs(result).unavailable(), "--no-ceilings");
    EXPECT_EQ(named(Roofs(result).bandwidth(Level::dram)), "none");
    EXPECT_EQ(named(Roofs(Result{}).plain(Precision::fp32)), "none");
}

}  // namespace
}  // namespace kbench
