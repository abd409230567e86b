// What a machine remembers of how much runs differ.
#include "bench/measure/machine/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Environment machine(const std::string& uuid) {
    Environment environment;
    GpuInfo& gpu = environment.gpu.emplace();
    gpu.name = "G";
    gpu.uuid = uuid;
    gpu.driver = "1";
    return environment;
}

TEST(Noise, IsRememberedByMachine) {
    const TemporaryDirectory scratch;
    const std::filesystem::path file = noise_file(scratch / "cache");
    std::vector<std::string> warnings;
    EXPECT_FALSE(remembered_noise(file, machine("a"), warnings));
    remember_noise(file, machine("a"), {0.002, 8, "kbench run", "then"});
    remember_noise(file, machine("b"), {0.01, 6, "kbench run", "now"});
    remember_noise(file, machine("a"), {0.003, 8, "kbench run", "now"});
    EXPECT_EQ(remembered_noise(file, machine("a"), warnings)->deviation, 0.003);
    EXPECT_EQ(remembered_noise(file, machine("b"), warnings)->runs, 6);
    EXPECT_FALSE(remembered_noise(file, machine("c"), warnings));
    EXPECT_THAT(warnings, IsEmpty());
    Environment cpu;
    cpu.host.cpu = "C";
    cpu.host.threads = 4;
    EXPECT_FALSE(remembered_noise(file, cpu, warnings));
}

TEST(Noise, AFileThatIsNotOursIsAWarningAndIsReplaced) {
    const TemporaryDirectory scratch;
    const std::filesystem::path file = noise_file(scratch / "cache");
    for (
        const char* text :
        {"{", "[]", R"({"schema": "other/1", "machines": {}})", R"({"schema": "kbench.noise/1"})",
         R"({"schema": "kbench.noise/1", "machines": {"G a 1": {"deviation": -1, "runs": 8, "command_line": "", "measured_at": ""}}})",
         R"({"schema": "kbench.noise/1", "machines": {"G a 1": {"deviation": "x"}}})"}) {
        scratch.write("cache/noise.json", text);
        std::vector<std::string> warnings;
        EXPECT_FALSE(remembered_noise(file, machine("a"), warnings)) << text;
        EXPECT_THAT(warnings, ElementsAre(HasSubstr(file.string()))) << text;
        remember_noise(file, machine("a"), {0.002, 8, "", ""});
        EXPECT_TRUE(remembered_noise(file, machine("a"), warnings)) << text;
    }
}

}  // namespace
}  // namespace kbench
