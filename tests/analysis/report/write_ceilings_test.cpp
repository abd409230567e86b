// Ceilings as people read them, and the datasheet's values beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/machine/ceilings.h"
#include "analysis/machine/machine.h"
#include "analysis/report/writers.h"
#include "analysis/result/result_json.h"
#include "tests/analysis/golden.h"

namespace kbench {
namespace {

using testing::HasSubstr;

Ceiling ceiling(std::string name, double value, double clock_mhz = 0) {
    Ceiling result;
    result.name = std::move(name);
    result.value = Quantity::measured(value);
    result.low = 0.99 * value;
    result.high = 1.01 * value;
    result.clock_mhz = clock_mhz;
    return result;
}

MachineFile a_machine() {
    MachineFile machine;
    machine.name = "A GPU 141 GB";
    machine.roofs = {{"dram_read", 4800, "product brief, page 1"}, {"fp16_tensor", 989, "page 2 | without sparsity"}};
    return machine;
}

CeilingRun a_run() {
    CeilingRun run;
    run.device = "A GPU";
    run.driver = "570.1";
    run.measured_at = "2026-01-31T12:34:56Z";
    run.seconds = 3.25;
    run.ceilings = {ceiling("dram_read", 4320, 1755), ceiling("dram_triad", 4200.5),
                    ceiling("fp16_tensor", 791.2, 1620), ceiling("launch", 2.134), Ceiling{}};
    run.ceilings.back().name = "fp64_tensor";
    run.ceilings.back().value = Quantity::unavailable("compute capability 7.5 has no such unit");
    const MachineFile machine = a_machine();
    add_datasheet(run, &machine);
    return run;
}

TEST(Datasheet, BandwidthOfTheMemoryStandsBesideEveryStreamOfIt) {
    const CeilingRun run = a_run();
    EXPECT_EQ(run.ceilings[0].datasheet.value, 4800);
    EXPECT_EQ(run.ceilings[1].datasheet.value, 4800);
    EXPECT_EQ(run.ceilings[2].datasheet.value, 989);
    EXPECT_EQ(run.ceilings[0].datasheet.origin, Origin::estimated);
    EXPECT_EQ(run.ceilings[0].datasheet.reason, "datasheet: product brief, page 1");
    EXPECT_FALSE(run.ceilings[3].datasheet.value);
    EXPECT_THAT(run.ceilings[3].datasheet.reason, HasSubstr("A GPU 141 GB states none"));

    MachineFile cpu;
    cpu.roofs = {{"cpu_dram_read", 307.2, "8 channels"}};
    CeilingRun of_cpu;
    of_cpu.ceilings = {ceiling("cpu_dram_triad", 193), ceiling("cpu_dram_triad_one_core", 12)};
    add_datasheet(of_cpu, &cpu);
    EXPECT_EQ(of_cpu.ceilings[0].datasheet.value, 307.2);
    EXPECT_FALSE(of_cpu.ceilings[1].datasheet.value) << "no datasheet states what one core can do";
}

TEST(Datasheet, ThatIsNotKnownSaysSo) {
    CeilingRun run = a_run();
    add_datasheet(run, nullptr);
    for (const Ceiling& one : run.ceilings) {
        EXPECT_FALSE(one.datasheet.value);
        EXPECT_THAT(one.datasheet.reason, HasSubstr("no machine file"));
    }
}

TEST(WriteCeilings, AreAsTheyWereLookedAt) {
    expect_golden("ceilings.txt", write_ceilings(a_run(), CeilingFormat::text, 140));
    expect_golden("ceilings.md", write_ceilings(a_run(), CeilingFormat::markdown, 0));
}

TEST(WriteCeilings, JsonReadsBack) {
    const std::string text = write_ceilings(a_run(), CeilingFormat::json, 0);
    EXPECT_EQ(ceilings_to_json(parse_ceilings(nlohmann::ordered_json::parse(text), "text")), ceilings_to_json(a_run()));
}

}  // namespace
}  // namespace kbench
