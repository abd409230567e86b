// What nobody should type, and files that nobody should trust: one line, the right exit code, nothing destroyed. Each
// of these once crashed, lied or destroyed something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/bench/program.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class Hostile : public Program {
  protected:
    std::string run(const std::string& arguments = "") {
        return "--config " + tiny() + " --backend cpu --quick --out " + (directory_ / "run").string() + " " + arguments;
    }
    std::string file(const std::string& name, const std::string& text) { return directory_.write(name, text).string(); }
    Json result() {
        EXPECT_EQ(kbench(run()).exit_code, 0);
        return Json::parse(read_text(directory_ / "run/result.json"));
    }
    void expect_refused_result(const Json& json, const std::string& substring) {
        expect_refusal("table " + file("changed.json", json.dump()), substring);
    }
};

TEST_F(Hostile, SizesThatNoMemoryHoldsAreRefused) {
    expect_refusal(run("--batch 4611686018427387905"), "over config's the largest count");
    expect_refusal("micro --backend cpu --op softmax --shape r4611686018427387904w4", "no memory holds more");
    expect_refusal("micro --backend cpu --op gemm --shape m99999999n99999999k99999999", "no memory holds more");
    const std::string wide = file("wide.json", R"({"n_embd": 536870912, "n_layer": 2, "n_head": 4, "vocab_size": 301,
                                                    "n_positions": 32})");
    expect_refusal("--backend cpu --ceilings none --config " + wide, "no memory holds more");
}

TEST_F(Hostile, CountsThatWouldTakeAllMemoryAreRefused) {
    expect_refusal(run("--repeat 1000000000"), "at most 100000");
    const std::string deep = file("deep.json", R"({"n_embd": 64, "n_layer": 1000000000, "n_head": 4, "vocab_size": 301,
                                                    "n_positions": 32})");
    expect_refusal("--backend cpu --ceilings none --config " + deep, "at most 10000");
    expect_refusal("--backend cpu --ceilings none --config " +
                       file("speech.json", R"({"model_type": "deepspeech2", "hidden_layers": 100000})"),
                   "at most 10000");
}

TEST_F(Hostile, JsonOfAnyDepthIsRefusedByEveryReader) {
    const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    expect_refusal("--backend cpu --config " + file("config-deep.json", deep), "nested deeper");
    expect_refusal("table " + file("result-deep.json", deep), "nested deeper");
    expect_refusal("list machines --id " + file("machine-deep.json", deep), "nested deeper");
    const std::string header = R"({"a":)" + deep + "}";
    std::string length(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
    expect_refusal(run("--weights " + file("deep.safetensors", length + header)), "nested deeper");
}

TEST_F(Hostile, AResultOfManyKeysIsRefusedAtOnce) {
    Json json = result();
    std::string many;
    for (int i = 0; i < 100'000; ++i) many += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":\"x\"";
    std::string text = json.dump();
    const std::string options = "\"options\":{";
    text.insert(text.find(options) + options.size(), many + ",");
    expect_refusal("table " + file("wide.json", text), "more than 20000 members");
}

TEST_F(Hostile, WhatTheSchemaForbidsIsNotRead) {
    const Json good = result();
    for (const auto& [axis, value] : {std::pair{"batch", 0}, std::pair{"seq", -7}}) {
        Json json = good;
        json["points"][0][axis] = value;
        expect_refused_result(json, "expected an integer from 1 to ");
    }
    Json json = good;
    const Json quantity{{"value", -5.0}, {"origin", "measured"}, {"reason", ""}};
    json["ceilings"]["ceilings"] = {{{"name", "cpu_dram_read"},
                                     {"value", quantity},
                                     {"low", -5.0},
                                     {"high", -5.0},
                                     {"clock_mhz", 0.0},
                                     {"datasheet", quantity}}};
    expect_refused_result(json, "a roof above 0");
    json["ceilings"]["ceilings"][0]["value"]["value"] = 1e308;
    expect_refused_result(json, "a roof above 0");
}

TEST_F(Hostile, AMachineWithoutBoundsIsRefused) {
    for (const char* value : {"1e308", "1e-308"})
        expect_refusal(
            "list machines --id " + file("machine.json", std::string(R"({"id": "x", "name": "X", "kind": "gpu",
            "matches": ["X"], "roofs": [{"ceiling": "dram_read", "value": )") +
                                                             value + R"(, "source": "s"}]})"),
            "no machine has a roof beyond");
}

TEST_F(Hostile, OutputsAreRegularFilesOrNewOnes) {
    const fs::path node = directory_ / "pipe", target = directory_ / "target", link = directory_ / "link";
    ASSERT_EQ(mkfifo(node.c_str(), 0600), 0);
    std::ofstream(target) << "precious";
    fs::create_symlink(target, link);
    for (const fs::path& path : {node, link})
        expect_refusal(run("--dump-logits " + path.string()), "it should be a file");
    EXPECT_TRUE(fs::is_fifo(node));
    EXPECT_EQ(read_text(target), "precious");
    EXPECT_FALSE(fs::exists(directory_ / "run")) << "refused before anything is measured";
}

TEST_F(Hostile, AFileOfTheUsersThatIsCalledAsOurTemporaryOneStays) {
    const fs::path other = directory_ / "x.npy.tmp", target = directory_ / "target";
    std::ofstream(target) << "precious";
    fs::create_symlink(target, other);
    EXPECT_EQ(kbench(run("--dump-logits " + (directory_ / "x.npy").string())).exit_code, 0);
    EXPECT_EQ(read_text(target), "precious");
    EXPECT_TRUE(fs::is_symlink(other));
    EXPECT_TRUE(fs::exists(directory_ / "x.npy"));
}

TEST_F(Hostile, AnOutputWhoseFolderIsNotThereIsRefusedBeforeAnythingIsMeasured) {
    const fs::path inside = directory_ / "run/points/x/y.npy";  // made by nobody
    expect_refusal(run("--dump-logits " + inside.string()), "is no directory");
}

TEST_F(Hostile, AnOutputThatCannotBeWrittenInTheEndLeavesThePointItsFigures) {
    const std::string name(250, 'x');  // may stand in a folder, but not with what a temporary name adds
    const Outcome outcome = kbench(run("--dump-logits " + (directory_ / name).string()));
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("File name too long"));
    const Json point = Json::parse(read_text(directory_ / "run/result.json"))["points"][0];
    EXPECT_EQ(point["status"], "failed");
    EXPECT_GT(point["end_to_end"]["latency"]["summary_ms"]["median"].get<double>(), 0);
}

TEST_F(Hostile, AFullStandardOutputIsNoSuccess) {
    if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
    for (const std::string& arguments : {std::string("list models"), std::string("doctor"), run()}) {
        const Outcome outcome = shell("sh -c 'KBENCH_CACHE_DIR=" + (directory_ / "cache").string() +
                                      " " KBENCH_BINARY " " + arguments + " >/dev/full'");
        EXPECT_EQ(outcome.exit_code, 1) << arguments;
        EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written: No space left on device")) << arguments;
    }
    EXPECT_TRUE(fs::exists(directory_ / "run/report.html")) << "files are written first";
}

TEST_F(Hostile, AReaderThatGoesAwayStopsNoRun) {
    shell("sh -c 'KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " KBENCH_BINARY " run --format json " +
          run() + " | true'");
    for (const char* written : {"result.json", "report.html", "report.md"})
        EXPECT_TRUE(fs::exists(directory_ / "run" / written)) << written;
}

TEST_F(Hostile, StandardErrorIsNobodysLoss) {
    const std::string program = "KBENCH_CACHE_DIR=" + (directory_ / "cache").string() + " " KBENCH_BINARY " ";
    EXPECT_EQ(shell("sh -c '" + program + run() + " 2>&-'").exit_code, 0);
    EXPECT_EQ(read_text(directory_ / "run/.kbench.lock"), "") << "messages went into the next file that was opened";
    if (access("/dev/full", W_OK) != 0) return;
    EXPECT_EQ(shell("sh -c '" + program + "table " + (directory_ / "run").string() + " 2>/dev/full'").exit_code, 0);
}

TEST_F(Hostile, CompareFailsWhereAPointFailedOrIsMissing) {
    Json good = result(), bad = good;
    const std::string first = file("a/result.json", good.dump());
    bad["points"].push_back(bad["points"][0]);
    bad["points"][1]["batch"] = 3;
    const std::string both = file("b/result.json", bad.dump());
    const Outcome missing = kbench("compare " + both + " " + first + " --fail-above 50%");
    EXPECT_EQ(missing.exit_code, 1);
    EXPECT_THAT(missing.err, HasSubstr("has no such point"));
    bad["points"][1]["status"] = "failed";
    bad["points"][1]["reason"] = "a planted failure";
    Json both_done = good;
    both_done["points"].push_back(good["points"][0]);
    both_done["points"][1]["batch"] = 3;
    const Outcome failed = kbench("compare " + file("c/result.json", both_done.dump()) + " " +
                                  file("d/result.json", bad.dump()) + " --fail-above 50%");
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.err, HasSubstr("a planted failure"));
    EXPECT_EQ(kbench("compare " + first + " " + first + " --fail-above 50%").exit_code, 0) << "the check can pass, too";
}

TEST_F(Hostile, AModelsNameSteersNoPathAndNoTerminal) {
    const std::string evil = file("evil.json", R"({"_name_or_path": "../../evil\u001b[31m", "n_embd": 64, "n_layer": 1,
                                                    "n_head": 4, "vocab_size": 301, "n_positions": 32})");
    const Outcome outcome = shell(
        "sh -c 'cd " + (directory_ / "").string() +
        " && KBENCH_CACHE_DIR=cache " KBENCH_BINARY " --backend cpu --quick --ceilings none --config " + evil + "'");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
    const fs::path runs = directory_ / "kbench-runs";
    ASSERT_TRUE(fs::is_directory(runs));
    EXPECT_EQ(std::distance(fs::directory_iterator(runs), fs::directory_iterator()), 1);
}

TEST_F(Hostile, CellsThatASpreadsheetWouldRunAreText) {
    Json json = result();
    for (Json& step : json["points"][0]["steps"]) step["implementation"] = "=cmd|' /C calc'!A0";
    const Outcome csv = kbench("table " + file("csv.json", json.dump()) + " -c implementation,time_us --format csv");
    EXPECT_THAT(csv.out, HasSubstr("\n'=cmd"));
    EXPECT_THAT(csv.out, Not(HasSubstr("\n=")));
    const Outcome text = kbench("table " + (directory_ / "csv.json").string() + " -c implementation --format json");
    EXPECT_THAT(text.out, HasSubstr("\"=cmd"));
}

TEST_F(Hostile, NonsenseIsRefusedInOneLine) {
    for (const char* nonsense :
         {"--time-budget inf", "--metrics ''", "--provider ''", "--metrics a,", "--interval nan"})
        expect_refusal(run(nonsense), "");
    const std::string gemm = "micro --backend cpu --op gemm --shape m8n8k8 ";
    for (const char* nonsense :
         {"--benchmark_format=foo", "--benchmark_time_unit=hours", "--benchmark_repetitions=0",
          "--benchmark_repetitions=-1", "--benchmark_min_time=inf", "--benchmark_out=/no/such/x", "--shape ''"})
        expect_refusal(gemm + nonsense, "");
}

TEST_F(Hostile, PathsThatNobodyCanOpenAreRefusedInOneLine) {
    const std::string folder = (directory_ / "").string(), link = (directory_ / "loop").string();
    fs::create_symlink("loop", link);
    const std::string longest = std::string(5000, 'x');
    for (const std::string& path : {folder, link, longest, std::string("/proc/self/mem")}) {
        expect_refusal(run("--tokens " + path), "");
        expect_refusal("--backend cpu --config " + path, "");
    }
    expect_refusal("table " + link, "");
    expect_refusal("table " + longest, "");
    expect_refusal("--config " + tiny() + " --backend cpu --quick --out " + longest, "");
}

TEST_F(Hostile, WithoutAHomeNoCacheIsWhereAnybodyCouldPlantOne) {
    const fs::path shared = fs::temp_directory_path() / ".cache/kbench";
    const bool was_there = fs::exists(shared);
    const Outcome outcome =
        shell("env -u HOME -u XDG_CACHE_HOME -u KBENCH_CACHE_DIR " KBENCH_BINARY " ceilings --help");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    shell("env -u HOME -u XDG_CACHE_HOME -u KBENCH_CACHE_DIR " KBENCH_BINARY " " + run());
    EXPECT_EQ(fs::exists(shared), was_there);
}

TEST_F(Hostile, LittleAddressSpaceEndsAPointAndNotTheSweep) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "ASan takes terabytes of address space";
#endif
    // Each thread has a stack and OpenBLAS's buffers: with many of them nothing else would have room.
    const std::string one = "OMP_NUM_THREADS=2 KBENCH_CACHE_DIR=" + (directory_ / "cache").string() +
                            " " KBENCH_BINARY
                            " --model gpt2 --seq 64 --backend cpu --quick --ceilings none --latency-only --out " +
                            (directory_ / "run").string();
    const Outcome outcome = shell("sh -c 'ulimit -v 2500000; " + one + " --batch 1,128'");
    if (outcome.exit_code == 127) GTEST_SKIP() << "its libraries alone need more";
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("1 of 2 points failed"));
    EXPECT_TRUE(fs::exists(directory_ / "run/points/seq64-batch1-fp32.json"));
}

TEST_F(Hostile, MicroThatMeasuredNothingIsNoSuccess) {
    const Outcome outcome = kbench("micro --backend cpu --op softmax --shape r4w4 --ceilings none --cache cold --out " +
                                   (directory_ / "micro").string());
    EXPECT_EQ(outcome.exit_code, 3) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("nothing was measured"));
}

}  // namespace
}  // namespace kbench
