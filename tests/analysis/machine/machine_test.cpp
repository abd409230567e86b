// Machine files: what the parser refuses, that the embedded ones hold together, and which of them a device is.
#include "analysis/machine/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/machine/ceilings.h"
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
    EXPECT_THAT(refusal(with("/l2", 3)), HasSubstr("m/x.json: 'l2' is no field; nearest: l2_mb, id"));
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
                HasSubstr("is 'fp32_plian', no ceiling of a gpu; nearest: fp32_plain"));
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
        EXPECT_TRUE(machine.boost_clock_mhz && machine.l2_mb && machine.tdp_w) << machine.id;
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

/// 16-bit tensor rates over plain fp32 ones, both at the clocks that NVIDIA states them for. FLOPs a clock and SM are
/// 2048 / 128 (A100), 4096 / 256 (H100, whose tensor clock is lower), 8192 / 256 (B200), 1024 / 256 (L4) and 512 / 256
/// (RTX 4090, fp32 sums). A rate with sparsity would be off by two.
TEST(Machine, TensorRatesAreDense) {
    for (const MachineFile& machine : machines()) {
        if (machine.kind != "gpu") continue;
        const double fp32 = machine.roof("fp32_plain").value(), fp16 = machine.roof("fp16_tensor").value();
        const double tf32 = machine.roof("tf32_tensor").value();
        const double expected = machine.id.starts_with("a100")   ? 16
                                : machine.id.starts_with("h")    ? 14.8
                                : machine.id.starts_with("b200") ? 30.2
                                : machine.id == "l4"             ? 4
                                                                 : 2;
        EXPECT_NEAR(fp16 / fp32, expected, 0.03 * expected) << machine.id;
        EXPECT_NEAR(tf32, fp16 / 2, 0.01 * fp16) << machine.id;
        EXPECT_EQ(machine.roof("bf16_tensor"), fp16) << machine.id;
    }
}

TEST(Machine, PlainRatesFollowFromClocksAndLanes) {
    for (const MachineFile& machine : machines()) {
        if (machine.kind != "gpu") continue;
        const double lanes = machine.id.starts_with("a100") ? 64 : 128;
        const double derived = *machine.multiprocessors * lanes * 2 * *machine.boost_clock_mhz / 1e6;
        EXPECT_NEAR(machine.roof("fp32_plain").value(), derived, 0.005 * derived) << machine.id;
        EXPECT_NEAR(machine.roof("shared_read").value(), *machine.multiprocessors * 0.128 * *machine.boost_clock_mhz,
                    1);
    }
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
                                                     {"b200-sxm", 7700}};
    for (const auto& [id, gb_per_s] : stated) EXPECT_EQ(machine(id).roof("dram_read"), gb_per_s) << id;
    EXPECT_EQ(machine("xeon-cascade-lake").roof("cpu_dram_read"), 140.8);
    EXPECT_EQ(machine("xeon-sapphire-rapids").roof("cpu_dram_read"), 307.2);
    EXPECT_EQ(machine("xeon-emerald-rapids").roof("cpu_dram_read"), 358.4);
    EXPECT_EQ(machine("epyc-genoa").roof("cpu_dram_read"), 460.8);
}

TEST(Machine, AnUnknownIdIsRefusedWithTheNearest) {
    EXPECT_THAT(refusal_of([] { machine("h200"); }), HasSubstr("unknown machine 'h200'; nearest: h200-sxm"));
    EXPECT_THAT(refusal_of([] { machine("a100"); }),
                HasSubstr("nearest: a100-pcie-80gb, a100-sxm4-40gb, a100-sxm4-80gb; or"));
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
}

TEST(Machine, AnotherModelOrBackendIsNotTaken) {
    EXPECT_EQ(id_of("NVIDIA L40", "", "cuda"), "");
    EXPECT_EQ(id_of("NVIDIA H200 NVL", "", "cuda"), "");
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
