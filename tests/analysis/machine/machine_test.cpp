// Machine files: what the parser refuses, that the embedded ones hold together, and which of them a device is.
#include "analysis/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/machine/ceilings.h"
#include "analysis/machine/machine_group.h"
#include "kbench/error.h"
#include "tests/bench/refusal.h"

namespace kbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::filesystem::path folder = std::filesystem::path(KBENCH_SOURCE_DIR) / "machines";

json good() {
    return json::parse(R"({"id": "x", "name": "X", "kind": "gpu", "matches": ["X 1"], "multiprocessors": 2,
        "roofs": [{"ceiling": "dram_read", "value": 100, "source": "sheet"},
                  {"ceiling": "fp32_plain", "value": 2, "source": "sheet"}]})");
}

std::string refusal(const json& file) {
    return refusal_of([&] { parse_machine(file.dump(), "m/x.json"); });
}

json with(const char* pointer, json value) {
    json file = good();
    file[json::json_pointer(pointer)] = std::move(value);
    return file;
}

json without(const char* object, const char* name) {
    json file = good();
    file[json::json_pointer(object)].erase(name);
    return file;
}

TEST(Machine, FieldsOfAFileArriveAsWritten) {
    const MachineFile machine = parse_machine(with("/l2_mb", 1.5).dump(), "x.json");
    EXPECT_EQ(machine.id, "x");
    EXPECT_EQ(machine.kind, "gpu");
    EXPECT_EQ(machine.matches, std::vector<std::string>{"X 1"});
    EXPECT_EQ(machine.multiprocessors, 2);
    EXPECT_EQ(machine.l2_mb, 1.5);
    EXPECT_EQ(machine.cores, std::nullopt);
    EXPECT_EQ(machine.roof("fp32_plain"), 2);
    EXPECT_EQ(machine.roof("fp64_plain"), std::nullopt);
    EXPECT_EQ(machine.roofs[0].source, "sheet");
    EXPECT_EQ(machine.note, "");
    EXPECT_EQ(parse_machine(with("/note", "Is slow.").dump(), "x.json").note, "Is slow.");
}

TEST(Machine, BadFilesAreRefusedWithTheFieldNamed) {
    EXPECT_THAT(refusal_of([] { parse_machine("{", "m/x.json"); }), HasSubstr("m/x.json is not JSON"));
    EXPECT_THAT(refusal(json::array()), HasSubstr("m/x.json is not an object"));
    EXPECT_THAT(refusal(with("/l2", 3)), HasSubstr("m/x.json: 'l2' is no field; did you mean l2_mb? One of "));
    EXPECT_THAT(refusal(without("", "name")), HasSubstr("'name' is missing"));
    EXPECT_THAT(refusal(with("/name", " ")), HasSubstr("'name' must be a string that is not empty"));
    EXPECT_THAT(refusal(with("/id", 3)), HasSubstr("'id' must be a string"));
    EXPECT_THAT(refusal(with("/kind", "tpu")), HasSubstr("'kind' is 'tpu'; it must be gpu or cpu"));
    EXPECT_THAT(refusal(with("/matches", json::array())), HasSubstr("'matches' must be an array of device names"));
    EXPECT_THAT(refusal(with("/note", "")), HasSubstr("'note' must be a string that is not empty"));
    EXPECT_THAT(refusal(with("/tdp_w", 0)), HasSubstr("'tdp_w' must be a number above 0"));
    EXPECT_THAT(refusal(with("/multiprocessors", 2.5)), HasSubstr("'multiprocessors' must be a whole number"));
    EXPECT_THAT(refusal(with("/roofs", json::array())), HasSubstr("'roofs' must be an array of roofs, at least one"));
}

TEST(Machine, BadRoofsAreRefusedWithTheirPlace) {
    EXPECT_THAT(refusal(with("/roofs/1/value", 0)), HasSubstr("m/x.json: roofs[1]: 'value' must be a number above 0"));
    EXPECT_THAT(refusal(with("/roofs/1/value", -3)), HasSubstr("'value' must be a number above 0"));
    EXPECT_THAT(refusal(with("/roofs/1/value", "2")), HasSubstr("'value' must be a number above 0"));
    EXPECT_THAT(refusal(without("/roofs/0", "source")), HasSubstr("roofs[0]: 'source' is missing"));
    EXPECT_THAT(refusal(with("/roofs/0/source", "")), HasSubstr("roofs[0]: 'source' must be a string"));
    EXPECT_THAT(refusal(with("/roofs/0/unit", "GB/s")), HasSubstr("'unit' is no field"));
    EXPECT_THAT(refusal(with("/roofs/1/ceiling", "fp32_plian")),
                HasSubstr("is 'fp32_plian', no ceiling of a gpu; did you mean fp32_plain? One of "));
    EXPECT_THAT(refusal(with("/roofs/1/ceiling", "avx2_fp32")), HasSubstr("no ceiling of a gpu"));
    EXPECT_THAT(refusal(with("/roofs/1/ceiling", "dram_read")), HasSubstr("is 'dram_read' a second time"));
    EXPECT_THAT(refusal(with("/roofs/1/ceiling", "a\nb")), HasSubstr("is 'a b'"));
}

TEST(Machine, EveryFileIsEmbeddedUnderItsNameAndHasSources) {
    std::set<std::string> ids;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().filename() != "machine.schema.json") ids.insert(entry.path().stem());
    std::set<std::string> embedded;
    for (const MachineFile& machine : machines()) {
        embedded.insert(machine.id);
        for (const MachineFile::RoofValue& roof : machine.roofs)
            EXPECT_GT(roof.source.size(), 20U) << machine.id << " " << roof.ceiling;
        EXPECT_TRUE(machine.roof(machine.kind == "gpu" ? "dram_read" : "cpu_dram_read")) << machine.id;
        EXPECT_EQ(machine.kind == "gpu", machine.multiprocessors.has_value()) << machine.id;
        EXPECT_EQ(machine.kind == "cpu", machine.cores.has_value()) << machine.id;
        EXPECT_TRUE(machine.boost_clock_mhz && machine.l2_mb) << machine.id;
        EXPECT_TRUE(machine.tdp_w || machine.note.find("power") != machine.note.npos) << machine.id;
        EXPECT_TRUE(machine.kind == "cpu" || machine.memory_gb || machine.note.find("memory_gb") != machine.note.npos)
            << machine.id;
    }
    EXPECT_EQ(embedded, ids);
}

TEST(Machine, TheSchemaListsTheCeilings) {
    std::ifstream file(folder / "machine.schema.json");
    const json schema = json::parse(file);
    std::vector<std::string> names;
    for (const CeilingKind& kind : ceiling_kinds()) names.emplace_back(kind.name);
    EXPECT_EQ(schema["$defs"]["roof"]["properties"]["ceiling"]["enum"], json(names));
}

/// What an SM of an architecture does a clock, from the whitepapers and the CUDA C++ Programming Guide; rates with
/// sparsity would be off by two. The tensor clock of H100 is lower than its boost clock, and B200's datasheet rounds.
struct PerClock {
    const char* begins;
    double fp32_lanes, shared_bytes;
    double fp16_over_fp32;  ///< tensor cores with fp32 sums over plain FMAs; 0: there are none
};
constexpr PerClock per_clock[] = {
    {"p100", 64, 128, 0}, {"v100", 64, 128, 8}, {"t4", 64, 64, 8},        {"a100", 64, 128, 16},
    {"a30", 64, 128, 16}, {"a10", 128, 128, 4}, {"h", 128, 128, 14.8},    {"gh200", 128, 128, 14.8},
    {"l4", 128, 128, 4},  {"rtx", 128, 128, 2}, {"b200", 128, 128, 30.2},
};

/// The row of `machine`; the longest beginning counts, as a100 is no a10.
const PerClock& per_clock_of(const MachineFile& machine) {
    const PerClock* best = nullptr;
    for (const PerClock& row : per_clock)
        if (machine.id.starts_with(row.begins) &&
            (!best || std::string_view(row.begins).size() > std::string_view(best->begins).size()))
            best = &row;
    return best != nullptr ? *best : throw std::out_of_range(machine.id + " has no row");
}

/// All of NVIDIA's GPUs.
std::vector<MachineFile> nvidia() {
    std::vector<MachineFile> gpus;
    for (const MachineFile& machine : machines())
        if (machine.name.starts_with("NVIDIA")) gpus.push_back(machine);
    return gpus;
}

TEST(Machine, TensorRatesAreDense) {
    for (const MachineFile& machine : nvidia()) {
        const double expected = per_clock_of(machine).fp16_over_fp32;
        const std::optional<double> fp16 = machine.roof("fp16_tensor"), bf16 = machine.roof("bf16_tensor");
        ASSERT_EQ(fp16.has_value(), expected > 0) << machine.id;
        if (!fp16) continue;
        EXPECT_NEAR(*fp16 / machine.roof("fp32_plain").value(), expected, 0.03 * expected) << machine.id;
        // Ampere brought bf16 and tf32 at once: the rate of fp16 and half of it.
        const bool before_ampere = machine.note.find("bf16 and tf32 have no unit") != machine.note.npos;
        EXPECT_EQ(bf16, before_ampere ? std::nullopt : fp16) << machine.id;
        const std::optional<double> tf32 = machine.roof("tf32_tensor");
        ASSERT_EQ(tf32.has_value(), bf16.has_value()) << machine.id;
        EXPECT_NEAR(tf32.value_or(*fp16 / 2), *fp16 / 2, 0.01 * *fp16) << machine.id;
    }
    const MachineFile& mi300x = machine("mi300x");
    for (const auto& [ceiling, per_cu] : {std::pair{"fp16_tensor", 2048},
                                          {"bf16_tensor", 2048},
                                          {"tf32_tensor", 1024},
                                          {"fp64_tensor", 256},
                                          {"fp32_plain", 256},
                                          {"fp64_plain", 128}})
        EXPECT_NEAR(mi300x.roof(ceiling).value(), 304 * 2100e-6 * per_cu, 0.06) << ceiling;
}

TEST(Machine, PlainRatesFollowFromClocksAndLanes) {
    for (const MachineFile& machine : nvidia()) {
        const PerClock& row = per_clock_of(machine);
        const double sm_ghz = *machine.multiprocessors * *machine.boost_clock_mhz / 1e3;
        EXPECT_NEAR(machine.roof("fp32_plain").value(), sm_ghz * row.fp32_lanes * 2 / 1e3,
                    0.005 * sm_ghz * row.fp32_lanes * 2 / 1e3)
            << machine.id;
        EXPECT_NEAR(machine.roof("shared_read").value(), sm_ghz * row.shared_bytes, 1) << machine.id;
    }
}

/// FLOPs that a core does a clock, at the clock of all cores that the file states; Cascade Lake has a lower one for
/// each instruction set.
TEST(Machine, RatesOfCpusFollowFromClocksAndUnits) {
    const std::map<std::string_view, double> of_two_units = {
        {"avx2_fp32", 32},    {"avx2_fp64", 16},    {"avx512_fp32", 64}, {"avx512_fp64", 32},
        {"avx512_fp16", 128}, {"avx512_bf16", 128}, {"amx_bf16", 1024},  {"neon_fp32", 32},
        {"neon_fp64", 16},    {"neon_fp16", 64},    {"neon_bf16", 128}};
    for (const MachineFile& machine : machines()) {
        if (machine.kind != "cpu" || machine.id == "xeon-cascade-lake") continue;
        for (const MachineFile::RoofValue& roof : machine.roofs) {
            if (roof.ceiling == "cpu_dram_read") continue;
            const bool halves_512_bits = machine.id == "epyc-genoa" && roof.ceiling.starts_with("avx512");
            const double flops = of_two_units.at(roof.ceiling) / (halves_512_bits ? 2 : 1);
            const double derived = *machine.cores * flops * *machine.boost_clock_mhz / 1e6;
            EXPECT_NEAR(roof.value, derived, 0.001 * derived) << machine.id << " " << roof.ceiling;
        }
    }
}

TEST(Machine, OneThatKbenchDoesNotRunOnSaysSo) {
    for (const char* id : {"p100-sxm2", "p100-pcie", "v100-sxm2", "v100-pcie", "t4", "mi300x"})
        EXPECT_THAT(machine(id).note, HasSubstr("does not run on it")) << id;
    EXPECT_THAT(machine("p100-sxm2").note, testing::StartsWith("No tensor cores"));
    EXPECT_EQ(machine("l4").note, "");
}

TEST(Machine, WithoutTensorCoresProductsInFp16RunOnPlainUnits) {
    const Roofs pascal(machine("p100-sxm2")), volta(machine("v100-sxm2")), arm(machine("graviton4"));
    EXPECT_EQ(pascal.matrix(Precision::fp16)->ceiling, "fp16_plain");
    EXPECT_EQ(pascal.matrix(Precision::fp64)->ceiling, "fp64_plain");
    EXPECT_EQ(pascal.matrix(Precision::bf16), std::nullopt);
    EXPECT_EQ(pascal.matrix(Precision::tf32), std::nullopt);
    EXPECT_EQ(volta.matrix(Precision::fp16)->ceiling, "fp16_tensor");
    EXPECT_EQ(volta.matrix(Precision::bf16), std::nullopt);
    EXPECT_EQ(arm.matrix(Precision::fp32)->ceiling, "neon_fp32");
    EXPECT_EQ(arm.matrix(Precision::bf16)->ceiling, "neon_bf16");
    Result measured;  // where the probe of tensor cores failed, plain cores are no roof
    measured.ceilings.ceilings.resize(1);
    measured.ceilings.ceilings[0].name = "fp16_plain";
    measured.ceilings.ceilings[0].value = Quantity::measured(60);
    EXPECT_EQ(Roofs(measured, "cuda").matrix(Precision::fp16), std::nullopt);
}

TEST(Machine, IsInAGroupOfItsKindAndMaker) {
    const std::pair<const char*, const char*> expected[] = {{"h200-sxm", "NVIDIA data centre GPU"},
                                                            {"p100-pcie", "NVIDIA data centre GPU"},
                                                            {"rtx-5090", "NVIDIA GeForce GPU"},
                                                            {"mi300x", "AMD GPU"},
                                                            {"xeon-ice-lake", "Intel CPU"},
                                                            {"epyc-turin", "AMD CPU"},
                                                            {"graviton3", "AWS CPU"}};
    for (const auto& [id, group] : expected) EXPECT_EQ(machine_group(machine(id)), group) << id;
    MachineFile other;
    other.name = "Maker X";
    other.kind = "cpu";
    EXPECT_EQ(machine_group(other), "other CPU");
    other.kind = "gpu";
    EXPECT_EQ(machine_group(other), "other GPU");
    for (const MachineFile& machine : machines())
        EXPECT_THAT(machine_groups(), testing::Contains(machine_group(machine))) << machine.id;
}

TEST(Machine, StatedBandwidths) {
    const std::pair<const char*, double> stated[] = {{"a100-sxm4-40gb", 1555},
                                                     {"a100-sxm4-80gb", 2039},
                                                     {"a100-pcie-80gb", 1935},
                                                     {"h100-sxm", 3350},
                                                     {"h100-pcie", 2039},
                                                     {"h200-sxm", 4800},
                                                     {"l4", 300},
                                                     {"rtx-4090", 1008},
                                                     {"b200-sxm", 7700},
                                                     {"p100-sxm2", 732},
                                                     {"p100-pcie", 732},
                                                     {"v100-sxm2", 900},
                                                     {"v100-pcie", 900},
                                                     {"t4", 320},
                                                     {"a10", 600},
                                                     {"a30", 933},
                                                     {"l40s", 864},
                                                     {"rtx-3090", 936},
                                                     {"rtx-5090", 1792},
                                                     {"gh200-96gb", 4000},
                                                     {"gh200-144gb", 4900},
                                                     {"mi300x", 5300}};
    for (const auto& [id, gb_per_s] : stated) EXPECT_EQ(machine(id).roof("dram_read"), gb_per_s) << id;
    EXPECT_EQ(machine("xeon-cascade-lake").roof("cpu_dram_read"), 140.8);
    EXPECT_EQ(machine("xeon-sapphire-rapids").roof("cpu_dram_read"), 307.2);
    EXPECT_EQ(machine("xeon-emerald-rapids").roof("cpu_dram_read"), 358.4);
    EXPECT_EQ(machine("epyc-genoa").roof("cpu_dram_read"), 460.8);
    EXPECT_EQ(machine("epyc-turin").roof("cpu_dram_read"), 614.4);
    EXPECT_EQ(machine("xeon-ice-lake").roof("cpu_dram_read"), 204.8);
    EXPECT_EQ(machine("graviton3").roof("cpu_dram_read"), 307.2);
    EXPECT_EQ(machine("graviton4").roof("cpu_dram_read"), 537.6);
}

TEST(Machine, AnUnknownIdIsRefusedWithTheNearest) {
    EXPECT_THAT(refusal_of([] { machine("h200"); }),
                HasSubstr("unknown machine 'h200'; did you mean h200-sxm, gh200-96gb or gh200-144gb?"));
    EXPECT_THAT(refusal_of([] { machine("a100"); }),
                HasSubstr("did you mean a100-pcie-80gb, a100-sxm4-40gb or a100-sxm4-80gb?"));
    EXPECT_THAT(refusal_of([] { machine("V100"); }), HasSubstr("did you mean v100-pcie or v100-sxm2"));
}

std::string id_of(const std::string& gpu, const std::string& cpu, std::string_view backend) {
    Environment environment;
    if (!gpu.empty()) environment.gpu.emplace().name = gpu;
    environment.host.cpu = cpu;
    const MachineFile* found = machine_of(environment, backend);
    return found == nullptr ? "" : found->id;
}

TEST(Machine, ADeviceIsFoundByItsName) {
    EXPECT_EQ(id_of("NVIDIA H200", "", "cuda"), "h200-sxm");
    EXPECT_EQ(id_of("NVIDIA H100 80GB HBM3", "", "cuda"), "h100-sxm");
    EXPECT_EQ(id_of("NVIDIA A100-SXM4-80GB", "", "cuda"), "a100-sxm4-80gb");
    EXPECT_EQ(id_of("NVIDIA L4", "", "cuda"), "l4");
    EXPECT_EQ(id_of("", "INTEL(R) XEON(R) PLATINUM 8592+", "cpu"), "xeon-emerald-rapids");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Platinum 8592+", "cpu"), "xeon-emerald-rapids");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Platinum 8280L CPU @ 2.70GHz", "cpu"), "xeon-cascade-lake");
    EXPECT_EQ(id_of("", "AMD EPYC 9654 96-Core Processor", "cpu"), "epyc-genoa");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "cpu"), "xeon-ice-lake");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Platinum 8480C", "cpu"), "xeon-sapphire-rapids-8480c");
    EXPECT_EQ(id_of("Tesla V100-SXM2-32GB", "", "cuda"), "v100-sxm2");
    EXPECT_EQ(id_of("NVIDIA GH200 480GB", "", "cuda"), "gh200-96gb");
}

TEST(Machine, AnotherModelOrBackendIsNotTaken) {
    EXPECT_EQ(id_of("NVIDIA L40", "", "cuda"), "");
    EXPECT_EQ(id_of("NVIDIA H200 NVL", "", "cuda"), "");
    EXPECT_EQ(id_of("NVIDIA A10G", "", "cuda"), "");
    EXPECT_EQ(id_of("Tesla V100S-PCIE-32GB", "", "cuda"), "");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Platinum 8380HL CPU @ 2.90GHz", "cpu"), "");
    EXPECT_EQ(id_of("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "", "cuda"), "");
    EXPECT_EQ(id_of("NVIDIA GeForce RTX 4090 Laptop GPU", "", "cuda"), "");
    EXPECT_EQ(id_of("", "Intel(R) Xeon(R) Processor", "cpu"), "");
    EXPECT_EQ(id_of("", "", "cuda"), "");
    EXPECT_EQ(id_of("NVIDIA H200", "INTEL(R) XEON(R) PLATINUM 8592+", "cpu"), "xeon-emerald-rapids");
}

TEST(Machine, ComputeScalesWithTheCoresOfTheHostAndMemoryWithItsSockets) {
    const MachineFile& socket = machine("xeon-emerald-rapids");
    Environment environment;
    HostInfo& host = environment.host;
    host.physical_cores = 16;
    const MachineFile part = scaled_to(socket, environment);
    EXPECT_NEAR(part.roof("amx_bf16").value(), socket.roof("amx_bf16").value() / 4, 1e-9);
    EXPECT_EQ(part.roof("cpu_dram_read"), 358.4);
    EXPECT_EQ(part.cores, 16);
    EXPECT_EQ(part.name, socket.name + ", 16 cores");
    host.physical_cores = 128;
    const MachineFile two = scaled_to(socket, environment);
    EXPECT_NEAR(two.roof("avx512_fp32").value(), socket.roof("avx512_fp32").value() * 2, 1e-9);
    EXPECT_NEAR(two.roof("cpu_dram_read").value(), 716.8, 1e-9);
    host.physical_cores = 0;
    EXPECT_EQ(scaled_to(socket, environment).roof("amx_bf16"), socket.roof("amx_bf16"));
    host.physical_cores = 16;
    EXPECT_EQ(scaled_to(machine("l4"), environment).roof("fp32_plain"), machine("l4").roof("fp32_plain"));
}

TEST(Machine, WithFewerThreadsThanCoresComputeIsOfThoseAndThereIsNoBandwidth) {
    const MachineFile& socket = machine("xeon-emerald-rapids");
    Environment environment;
    HostInfo& host = environment.host;
    host.physical_cores = 16;
    host.threads = 16;
    EXPECT_EQ(scaled_to(socket, environment).roof("cpu_dram_read"), 358.4);
    host.threads = 32;  // two a core
    EXPECT_EQ(scaled_to(socket, environment).cores, 16);
    host.threads = 1;
    const MachineFile one = scaled_to(socket, environment);
    EXPECT_NEAR(one.roof("amx_bf16").value(), socket.roof("amx_bf16").value() / 64, 1e-9);
    EXPECT_EQ(one.roof("cpu_dram_read"), std::nullopt);
    EXPECT_EQ(one.name, socket.name + ", 1 core");
    CeilingRun run;
    run.ceilings.resize(2);
    run.ceilings[0].name = "cpu_dram_triad";
    run.ceilings[1].name = "cpu_dram_triad_one_core";
    add_datasheet(run, &one);
    EXPECT_EQ(run.ceilings[0].datasheet.reason, "the datasheet states the bandwidth of all cores, 1 of 16 ran");
    EXPECT_THAT(run.ceilings[1].datasheet.reason, testing::EndsWith("states none"));
}

TEST(Machine, OfAPartOfAGpuComputeScalesWithItsSmsAndMemoryDoesNot) {
    const MachineFile& whole = machine("h200-sxm");
    Environment environment;
    GpuInfo& gpu = environment.gpu.emplace();
    gpu.name = "NVIDIA H200";
    gpu.multiprocessors = 132;
    EXPECT_EQ(scaled_to(whole, environment).roof("fp16_tensor"), whole.roof("fp16_tensor"));
    EXPECT_EQ(device_name(gpu), "NVIDIA H200");
    gpu.multiprocessors = 33;
    gpu.multiprocessors_of_device = 132;
    const MachineFile part = scaled_to(whole, environment);
    for (const MachineFile::RoofValue& roof : whole.roofs) {
        const bool shared_by_all = roof.ceiling.starts_with("dram") || roof.ceiling.starts_with("l2");
        EXPECT_NEAR(part.roof(roof.ceiling).value(), roof.value / (shared_by_all ? 1 : 4), 1e-9) << roof.ceiling;
    }
    EXPECT_EQ(part.name, whole.name + ", 33 of its 132 SMs");
    EXPECT_EQ(part.multiprocessors, 33);
    EXPECT_THAT(part.roofs.back().source, testing::EndsWith("; times 33 of 132 SMs"));
    EXPECT_EQ(device_name(gpu), "NVIDIA H200, 33 of its 132 SMs");
}

TEST(Machine, AResultWithoutCeilingsHasTheRoofsOfItsScaledDatasheet) {
    Result result;
    result.environment.host.cpu = "INTEL(R) XEON(R) PLATINUM 8592+";
    result.environment.host.physical_cores = 16;
    result.points.emplace_back().set("backend", "cpu");
    const Roofs roofs(result);
    EXPECT_EQ(roofs.unavailable(), "");
    EXPECT_NEAR(roofs.value("avx512_fp32").value(), machine("xeon-emerald-rapids").roof("avx512_fp32").value() / 4,
                1e-9);
    EXPECT_EQ(roofs.bandwidth(Level::dram)->origin, Origin::estimated);
}

}  // namespace
}  // namespace kbench
