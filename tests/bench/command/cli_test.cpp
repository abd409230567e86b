// The built program, as a user calls it: exit codes, one line for each mistake, and result files that keep the schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/report/render/render.h"
#include "kbench/result.h"
#include "models/base/gzip.h"
#include "tests/bench/program.h"

namespace kbench {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Cli : public Program {};

TEST_F(Cli, RunsASweepAndWritesFilesThatKeepTheSchema) {
    const std::string run = (directory_ / "run").string();
    const Outcome outcome =
        kbench("--config " + tiny() + " --backend cpu --batch 1,3 --precision tf32,fp32,fp64 --quick --out " + run);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("tokens/s"));
    EXPECT_THAT(outcome.out, HasSubstr("tf32 is a GPU tensor-core format")) << "skips are shown";
    EXPECT_THAT(kbench("table " + run + " --by step -c layer --format csv").out, HasSubstr("h.1.attn.c_attn"));
    EXPECT_TRUE(std::filesystem::exists(run + "/report.html"));
    if (shell("python3 -c 'import jsonschema'").exit_code != 0) GTEST_SKIP() << "python3 has no jsonschema";
    const Outcome check = shell(std::string(KBENCH_SOURCE_DIR) + "/scripts/validate-result " + run + "/result.json");
    EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST_F(Cli, ARunPrintsOneScreenAndEveryFigureWhenAsked) {
    const std::string run = "--config " + tiny() + " --backend cpu --quick --out " + (directory_ / "run").string();
    const std::string screen = kbench(run).out;
    EXPECT_THAT(screen, ContainsRegex("Where the (steps' )?time goes"));
    EXPECT_THAT(screen, HasSubstr("--verbose prints every figure"));
    EXPECT_THAT(screen, Not(HasSubstr("compulsory")));
    EXPECT_LE(std::ranges::count(screen, '\n'), 45);
    const std::string all = kbench("report --format text -v " + (directory_ / "run").string()).out;
    EXPECT_THAT(all, HasSubstr("compulsory"));
    EXPECT_THAT(all, HasSubstr("Every figure is measured, derived"));
    EXPECT_THAT(kbench(run + "2 --verbose").out, HasSubstr("compulsory"));
}

TEST_F(Cli, CommittedResultsKeepTheSchemaOrAreReadAsOlder) {
    std::string current, older;
    const std::filesystem::path results = std::filesystem::path(KBENCH_SOURCE_DIR) / "results";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(results))
        if (entry.path().filename() == "result.json.gz") {
            const std::string text = gunzip(read_text(entry.path()), entry.path());
            const bool is_current = text.find('"' + std::string(result_schema) + '"') < 100;
            (is_current ? current : older) += " " + entry.path().string();
        }
    ASSERT_FALSE((current + older).empty());
    if (!older.empty()) {
        const Outcome table = kbench("table --by point" + older);
        EXPECT_EQ(table.exit_code, 0) << table.err;
    }
    if (shell("python3 -c 'import jsonschema'").exit_code != 0) GTEST_SKIP() << "python3 has no jsonschema";
    if (current.empty()) return;
    const Outcome check = shell(std::string(KBENCH_SOURCE_DIR) + "/scripts/validate-result" + current);
    EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
}

TEST_F(Cli, JsonGoesToStdoutAlone) {
    const Outcome json =
        kbench("--config " + tiny() + " --backend cpu --quick --format json --out " + (directory_ / "a").string());
    EXPECT_TRUE(json.out.starts_with("{\n  \"schema\": \"kbench.result/6\"")) << json.out.substr(0, 80);
}

TEST_F(Cli, ACompressedResultIsTheSameToEveryCommand) {
    const std::string plain = (directory_ / "plain").string(), small = (directory_ / "small").string();
    EXPECT_EQ(kbench("--config " + tiny() + " --backend cpu --quick --out " + plain).exit_code, 0);
    EXPECT_EQ(kbench("merge " + plain + " --compress --out " + small).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(small + "/result.json"));
    const std::string resumed = (directory_ / "resumed").string(),
                      options = tiny() + " --backend cpu --quick --out " + resumed;
    EXPECT_EQ(kbench("--config " + options).exit_code, 0);
    EXPECT_EQ(kbench("--config " + options + " --resume --compress").exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(resumed + "/result.json")) << "one result a directory";
    EXPECT_EQ(kbench("table " + resumed).exit_code, 0);
    EXPECT_EQ(gunzip(read_text(small + "/result.json.gz"), small), read_text(plain + "/result.json"));
    EXPECT_LT(std::filesystem::file_size(small + "/result.json.gz"),
              std::filesystem::file_size(plain + "/result.json") / 2);
    for (const std::string command : {"table --by step --csv ", "report --format text "}) {
        const Outcome expected = kbench(command + plain + "/result.json");
        EXPECT_EQ(expected.exit_code, 0) << expected.err;
        for (const std::string& name : {plain, small, small + "/result.json.gz"})
            EXPECT_EQ(kbench(command + name).out, expected.out) << command << name;
    }
    for (const std::string& name : {plain, small, small + "/result.json.gz"})
        EXPECT_EQ(kbench("compare " + name + " " + plain + "/result.json --name a,b").exit_code, 0) << name;
    std::filesystem::copy(plain + "/result.json", small + "/result.json");
    expect_refusal("table " + small, "holds both result.json and result.json.gz");
    std::filesystem::remove(small + "/result.json");
    const std::string bytes = read_text(small + "/result.json.gz");
    expect_refusal("table " + directory_.write("cut.json.gz", bytes.substr(0, bytes.size() / 2)).string(),
                   "cut.json.gz: its gzip data are cut off");
    expect_refusal("--config " + tiny() + " --backend cpu --quick --out " + small, "holds a result.json.gz already");
}

TEST_F(Cli, HelpAndVersionAreAskedForAsElsewhere) {
    for (const char* command : {"run", "micro", "list"}) {
        const Outcome help = kbench(std::string("help ") + command);
        EXPECT_EQ(help.exit_code, 0) << help.err;
        EXPECT_EQ(help.out, kbench(command + std::string(" --help")).out);
    }
    EXPECT_EQ(kbench("help").out, kbench("--help").out);
    EXPECT_EQ(kbench("-V").out, kbench("--version").out);
    expect_refusal("help micor", "unknown command 'micor'; did you mean micro?");
    expect_refusal("help run micro", "name one command");
}

TEST_F(Cli, RowsOfTokensSayBatchAndLength) {
    const std::string rows = directory_.write("rows.json", "[[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]").string();
    const std::string dry = "--config " + tiny() + " --backend cpu --dry-run --tokens " + rows;
    EXPECT_EQ(kbench(dry).out, "seq5-batch2-fp32\n");
    expect_refusal(dry + " --seq 4", "has shape (2, 5), rows of 5 tokens; --seq 4 needs rows of 4");
    const Outcome run = kbench("--config " + tiny() + " --backend cpu --quick --tokens " + rows + " --out " +
                               (directory_ / "run").string());
    EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(Cli, ADryRunRefusesWhatTheRunWould) {
    directory_.write("taken/result.json", "{}");
    for (const std::string& wrong :
         {"--out " + (directory_ / "taken").string(), std::string("--provider gemm=nobody"),
          std::string("--weights /nowhere.safetensors"), std::string("--input token=t.npy"),
          "--tokens " + directory_.write("t.txt", "1 2 999").string(), std::string("--dump-output logit=l.npy")}) {
        const std::string command = "--config " + tiny() + " --backend cpu --quick " + wrong;
        const Outcome run = kbench(command), dry = kbench(command + " --dry-run");
        EXPECT_EQ(run.exit_code, 2) << wrong;
        EXPECT_EQ(dry.exit_code, 2) << wrong;
        EXPECT_EQ(dry.err, run.err) << wrong;
        EXPECT_EQ(dry.out, "") << wrong;
    }
}

TEST_F(Cli, CompletionKnowsEveryCommandAndItsOptions) {
    const std::string script = directory_.write("kbench.bash", kbench("completion bash").out).string();
    const auto completed = [&](const std::string& line) {
        return shell("bash -c 'source " + script + "; COMP_WORDS=(" + line +
                     "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _kbench; echo ${COMPREPLY[@]}'")
            .out;
    };
    EXPECT_EQ(completed("kbench mi"), "micro\n");
    EXPECT_EQ(completed("kbench --mod"), "--model\n");
    EXPECT_EQ(completed("kbench run --model gpt2-m"), "gpt2-medium\n");
    EXPECT_EQ(completed("kbench run --precision a"), "all\n");
    EXPECT_EQ(completed("kbench table --fo"), "--fold --format\n");
    EXPECT_EQ(completed("kbench list met"), "metrics\n");
    EXPECT_EQ(completed("kbench run --out --mod"), "\n") << "a folder is the shell's to complete";
    const std::string zsh = kbench("completion zsh").out;
    EXPECT_THAT(zsh, testing::StartsWith("#compdef kbench\n"));
    EXPECT_THAT(zsh, testing::EndsWith("then _bash_complete -o default -F _kbench; fi\n")) << "the first Tab";
    EXPECT_THAT(kbench("completion fish").out, HasSubstr("-n '__fish_seen_subcommand_from table' -l fold -d "));
    const std::string page = kbench("completion man").out;
    for (const char* text : {".SH OPTIONS OF micro\n", "\\fB\\-v,\\-\\-verbose\\fR ", ".B ceilings\n"})
        EXPECT_THAT(page, HasSubstr(text));
    expect_refusal("completion bsh", "completion for 'bsh': did you mean bash? One of bash, zsh, fish, man");
}

TEST_F(Cli, MistypedNamesAreAnsweredWithTheNearest) {
    expect_refusal("micor", "unknown command 'micor'; did you mean micro? One of run, micro, ");
    expect_refusal("list metric", "cannot list 'metric'; did you mean metrics? One of models, ");
    expect_refusal("--modle gpt2", "unknown option '--modle'; did you mean --model? (`kbench run --help` lists");
    expect_refusal("--model gpt2 --thraeds=2", "unknown option '--thraeds'; did you mean --threads?");
    expect_refusal("table --columns op --frobnicate r", "`kbench table --help` lists the options");
    expect_refusal("run gpt5", "'gpt5' is not expected; ");
    expect_refusal("micro --op gem --shape m8n8k8 --backend cpu", "did you mean gemm?");
    expect_refusal("claim --model gpt2 --latency 1s --machine a100", "did you mean a100-pcie-80gb, a100-sxm4-40gb or ");
    expect_refusal("--model gpt2-lrage", "did you mean gpt2-large?");
    expect_refusal("--model gpt2 --precision fp61", "did you mean fp64? One of fp16, ");
    const std::string onto = "--config " + tiny() + " --backend cpu --provider ";
    expect_refusal(onto + "gem=native", "unknown op 'gem'; did you mean gemm? (`kbench list ops`)");
    expect_refusal(onto + "gemm=ondnn", "this backend has no provider 'ondnn'; did you mean onednn? One of ");
    expect_refusal("table -c occ " + std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/gpu/result.json.gz",
                   "no column 'occ'; did you mean ");
}

TEST_F(Cli, MistakesGetOneLineAndExitTwo) {
    expect_refusal("--model gpt3", "unknown model 'gpt3'");
    expect_refusal("--model gpt2 --batch 0", "must be max or a whole number of at least 1");
    expect_refusal("--model gpt2 --seq 2000", "n_ctx 1024");
    expect_refusal("--model gpt2 --frobnicate", "--frobnicate");
    expect_refusal(
        "frobnicate",
        "must be one of run, micro, study, train, attach, table, compare, ab, claim, merge, report, profile, ceilings, list, doctor");
    expect_refusal("list providers --op", "--ops");
    directory_.write("taken/result.json", "{}");
    expect_refusal("--config " + tiny() + " --backend cpu --sms 96", "--sms 96: a CPU has no SMs");
    expect_refusal("ceilings --backend cpu --sms 96", "--sms 96: a CPU has no SMs");
    expect_refusal("--config " + tiny() + " --sms 0", "--sms");
    expect_refusal("--config " + tiny() + " --backend cpu --device 1", "--device 1: chooses a GPU; leave out");
    for (const char* command :
         {"run --model gpt2", "micro", "train --model gpt2", "study --model gpt2", "ceilings", "doctor"})
        expect_refusal(std::string(command) + " --device gpu0", "--device 'gpu0': must be a GPU's number or UUID");
    expect_refusal("micro --op residual --shape r8w8 --backend cpu --out " + (directory_ / "taken").string(),
                   "holds a result.json already");
    const std::string recorded = KBENCH_SOURCE_DIR "/results/h200-2026-11-21/";
    expect_refusal("report " + recorded + "gpu --what-if " + recorded + "cpu", "between a GPU and a CPU");
    expect_refusal("report " + recorded + "cpu --what-if h100-sxm", "between a GPU and a CPU");
    expect_refusal("list everything", "one of models, ops, providers, options, columns");
    expect_refusal("--model gpt2 --backend cpu --out " + directory_.write("a_file", "x").string(), "a_file");
    expect_refusal("--config " + config("{\"n_embd\": 64}"), "key 'n_layer' is missing");
    expect_refusal("--config " + config("not json"), "config.json");
    expect_refusal("--config " + tiny() + " --backend cpu --provider gemm=nobody --out " + (directory_ / "p").string(),
                   "no provider 'nobody'");
}

TEST_F(Cli, DamagedInputsGetOneLineAndExitTwo) {
    const std::string run = " --backend cpu --quick --out " + (directory_ / "run").string();
    const std::string truncated =
        directory_.write("model.safetensors", std::string("\x40\0\0\0\0\0\0\0{\"a\":", 13)).string();
    expect_refusal("--config " + tiny() + " --weights " + truncated + run, "model.safetensors");
    expect_refusal("--config " + tiny() + " --weights /nowhere.safetensors" + run, "/nowhere.safetensors");
    expect_refusal("--config " + tiny() + " --seq 4 --tokens " + directory_.write("t.txt", "1 2 3").string() + run,
                   "t.txt");
    expect_refusal("--config " + tiny() + " --seq 4 --tokens " + directory_.write("t.txt", "1 2 3 301").string() + run,
                   "301");
}

TEST_F(Cli, AnExistingResultIsNeverOverwritten) {
    const std::string run = (directory_ / "run").string();
    ASSERT_EQ(kbench("--config " + tiny() + " --backend cpu --quick --out " + run).exit_code, 0);
    const std::string before = read_text(run + "/result.json");
    expect_refusal("--config " + tiny() + " --backend cpu --quick --out " + run, "holds a result.json already");
    EXPECT_EQ(read_text(run + "/result.json"), before);
}

TEST_F(Cli, ASweepThatWasKilledIsGoneOnWithOnlyWhenAsked) {
    const std::string run = (directory_ / "run").string();
    const std::string sweep = "--config " + tiny() + " --backend cpu --batch 1,2 --quick --out " + run;
    ASSERT_EQ(kbench(sweep).exit_code, 0);
    for (const char* file : {"result.json", "points/seq32-batch2-fp32.json"}) std::filesystem::remove(run + "/" + file);
    const std::string kept = read_text(run + "/points/seq32-batch1-fp32.json");
    expect_refusal(sweep, "holds finished points of a sweep already; --resume goes on with it");
    expect_refusal(sweep + " --seed 2 --resume", "option seed is 1 in " + run);
    const Outcome resumed = kbench(sweep + " --resume");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("1 of 2 points are finished"));
    EXPECT_EQ(read_text(run + "/points/seq32-batch1-fp32.json"), kept);
    EXPECT_EQ(kbench("table --by point -c batch,status --csv " + run).out, "batch,status\n1,done\n2,done\n");
    for (const char* file : {"points/seq32-batch1-fp32.json", "points/seq32-batch2-fp32.json"})
        std::filesystem::remove(run + "/" + file);
    expect_refusal(sweep + " --resume", "and no points to go on from");
}

TEST_F(Cli, AnInterruptedSweepLeavesItsFinishedPointsAndTheSignalsExitCode) {
    const std::string run = (directory_ / "run").string();
    // Twice in a moment, as timeout(1) sends it: to the process and to its group.
    const Outcome outcome = shell(
        "(" KBENCH_BINARY " --config " + tiny() + " --backend cpu --quick --counters none --repeat 1000 --out " + run +
        " & p=$!; until [ -e " + run +
        "/points/seq32-batch1-fp32-repeat2.json ] || ! kill -0 $p; do sleep 0.02; done; kill -TERM $p; sleep 0.01; kill -TERM $p; wait $p)");
    EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("stopped by SIGTERM after "));
    const Outcome table = kbench("table --by point -c repeat,status --csv " + run);
    EXPECT_THAT(table.out, HasSubstr("repeat,status\n1,done\n2,done\n"));
    EXPECT_TRUE(std::filesystem::exists(run + "/report.html"));
}

/// On a busy host samples are taken again, and may not be enough when the process must end: then it is tried again.
TEST_F(Cli, InterruptedMicrobenchmarksLeaveWhatWasMeasured) {
    const std::string measured = "model,status\nresidual/native/fp32/fwd/r64w64/hot,done\n";
    std::string table;
    for (int attempt = 0; attempt < 5 && table != measured; ++attempt) {
        const std::string out = (directory_ / ("micro" + std::to_string(attempt))).string();
        const Outcome outcome = shell(
            "(" KBENCH_BINARY
            " micro --backend cpu --op residual --shape r64w64,r64w128,r64w192 --provider native --precision fp32 --cache hot --ceilings none --counters none --benchmark_min_time=0.5 --time-budget 1 --benchmark_format=json --out " +
            out + " > " + out + ".json & p=$!; until [ -e " + out +
            " ] || ! kill -0 $p; do sleep 0.02; done; sleep 0.3; kill -TERM $p; wait $p)");
        EXPECT_EQ(outcome.exit_code, 128 + SIGTERM) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("stopped by SIGTERM after 1 of 3 benchmarks"));
        EXPECT_THAT(read_text(out + ".json"), ContainsRegex("not run: stopped before it"));
        table = kbench("table --by point -c model,status --csv " + out).out;
    }
    EXPECT_EQ(table, measured);
}

TEST_F(Cli, ShardsRunApartAreJoinedAgain) {
    const std::string out = (directory_ / "it's a sweep").string(), apart = out + ".d";
    const std::string sweep = "--config " + tiny() + " --backend cpu --seq 8,16 --batch 1,2 --quick --counters none";
    const Outcome list = kbench("run " + sweep + " --shard 2/2 --dry-run --out \"" + apart + "\"");
    ASSERT_EQ(list.exit_code, 0) << list.err;
    EXPECT_EQ(list.out, "seq8-batch2-fp32\nseq16-batch1-fp32\n");
    EXPECT_FALSE(std::filesystem::exists(apart)) << "nothing is measured";
    for (const std::string shard : {"1", "2"}) {
        const Outcome part = kbench("run " + sweep + " --shard " + shard + "/2 --out \"" + apart + "/" + shard + "\"");
        ASSERT_EQ(part.exit_code, 0) << part.err;
    }
    const Outcome merge = kbench("merge --out \"" + out + "\" \"" + apart + "\"");
    ASSERT_EQ(merge.exit_code, 0) << merge.err;
    EXPECT_EQ(kbench("table --by point -c seq_len,batch,status --csv \"" + out + "\"").out,
              "seq_len,batch,status\n8,1,done\n8,2,done\n16,1,done\n16,2,done\n");
    EXPECT_TRUE(std::filesystem::exists(out + "/report.html"));
    expect_refusal("merge --out \"" + out + "\" \"" + apart + "\"", "holds a result.json already");

    const std::string other = (directory_ / "other").string();
    kbench("run --config " + tiny() + " --backend cpu --seq 8 --batch 1 --quick --counters none --seed 2 --out " +
           other);
    expect_refusal("merge --out " + (directory_ / "m").string() + " \"" + out + "\" " + other, "option seed is 1 in");
    std::filesystem::remove_all(other);
    kbench("run " + sweep + " --out " + other);
    expect_refusal("merge --out " + (directory_ / "m").string() + " \"" + out + "\" " + other, "has other data in");
    EXPECT_FALSE(std::filesystem::exists(directory_ / "m")) << "nothing is left of a refusal";
    expect_refusal("merge " + other, "--out is missing");
    expect_refusal("merge --out x", "no RESULT");
    const std::string empty = (directory_ / "empty").string();
    std::filesystem::create_directory(empty);
    expect_refusal("merge --out x " + empty, "holds no result.json and no finished points");
}

TEST_F(Cli, ImpossibleFiguresAreSaidFirstWithExitOne) {
    const std::string out = (directory_ / "planted").string();
    ASSERT_EQ(kbench("--config " + tiny() + " --backend cpu --quick --out " + out).exit_code, 0);
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(read_text(out + "/result.json"));
    json["points"][0]["end_to_end"]["latency"]["summary_ms"]["median"] = -1.0;
    const std::string planted = directory_.write("planted.json", json.dump()).string();
    const auto into = [&](const char* folder) { return " --out " + (directory_ / folder).string(); };
    for (const std::string& command :
         {"report " + planted + into("drawn"), "report --format text " + planted, "table " + planted,
          "compare " + planted + " " + out, "merge " + planted + into("joined")}) {
        const Outcome outcome = kbench(command);
        EXPECT_EQ(outcome.exit_code, 1) << command;
        EXPECT_THAT(outcome.err, HasSubstr("impossible: ")) << command;
        EXPECT_THAT(outcome.err, HasSubstr("the median latency is -1 ms")) << command;
    }
    EXPECT_TRUE(std::filesystem::exists(directory_ / "joined/result.json")) << "merge writes all the same";
    EXPECT_EQ(kbench("report --format text " + out).exit_code, 0);
}

TEST_F(Cli, AResultThatSaysItIsWrongPassesNoGate) {
    const std::string out = (directory_ / "right").string();
    ASSERT_EQ(kbench("--config " + tiny() + " --backend cpu --quick --out " + out).exit_code, 0);
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(read_text(out + "/result.json"));
    const auto gate = [&](const std::string& file) { return "compare " + out + " " + file + " --fail-above 1000%"; };
    json["points"][0]["verification"]["steps"][0]["error_over_bound"] = 9;
    const std::string wrong = directory_.write("wrong.json", json.dump()).string();
    for (const std::string& command : {gate(wrong), "report --format text " + wrong, "table " + wrong}) {
        const Outcome outcome = kbench(command);
        EXPECT_EQ(outcome.exit_code, 1) << command;
        EXPECT_THAT(outcome.err, HasSubstr("found an error of 9 times its bound; the result is wrong")) << command;
    }

    json = nlohmann::ordered_json::parse(read_text(out + "/result.json"));
    json["points"].push_back(json["points"][0]);
    json["points"][1]["end_to_end"]["latency"]["summary_ms"]["median"] = 1e6;
    const std::string twice = directory_.write("twice.json", json.dump()).string();
    for (const std::string& command : {gate(twice), "report --format text " + twice, "table " + twice,
                                       "merge " + twice + " --out " + (directory_ / "m").string()})
        expect_refusal(command, "twice.json: holds ");
}

TEST_F(Cli, ADirectoryOfResultsIsADataset) {
    const auto sweep = [&](const std::string& name) {
        const std::string out = (directory_ / name).string();
        kbench("--config " + tiny() + " --backend cpu --batch 1,2 --quick --counters none --out " + out);
        std::filesystem::remove(out + "/result.json");  // as after a kill
        return out;
    };
    const std::string before = sweep("before"), after = sweep("after");
    EXPECT_EQ(kbench("table --by point -c batch,seq_len,precision,repeat,status,reason --csv " + before).out,
              "batch,seq_len,precision,repeat,status,reason\n1,32,fp32,1,done,na\n2,32,fp32,1,done,na\n");
    const Outcome compared = kbench("compare " + before + " " + after);
    EXPECT_EQ(compared.exit_code, 0) << compared.err;
    EXPECT_THAT(compared.out, HasSubstr("before"));
    EXPECT_THAT(compared.out, HasSubstr("batch 2"));
    EXPECT_EQ(kbench("report " + before).exit_code, 0);
    EXPECT_TRUE(std::filesystem::exists(before + "/report.html"));
}

TEST_F(Cli, RunsThatBeginInTheSameSecondKeepTheirOwnDirectories) {
    const std::string run = "KBENCH_CACHE_DIR=. " KBENCH_BINARY " --config " + tiny() + " --backend cpu --quick";
    const Outcome both = shell("cd " + (directory_ / "").string() + " && (" + run + " & " + run + " & wait)");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    const auto runs = std::filesystem::directory_iterator(directory_ / "kbench-runs");
    EXPECT_EQ(std::distance(begin(runs), end(runs)), 2) << both.err;
}

TEST_F(Cli, WhatCannotRunHereIsExitThree) {
    const std::string out = " --out " + (directory_ / "run").string();
    const Outcome none = kbench("--config " + tiny() + " --backend cpu --precision tf32 --quick" + out);
    EXPECT_EQ(none.exit_code, 3);
    EXPECT_THAT(none.err, HasSubstr("nothing was measured"));
}

TEST_F(Cli, MetricsOfAChipAreListedWithoutAGpu) {
    const Outcome all = kbench("list metrics --chip GA100");
    EXPECT_EQ(all.exit_code, 0) << all.err;
    EXPECT_THAT(all.out, HasSubstr("sm__ops_path_tensor_src_fp16_dst_fp16.sum + "));
    EXPECT_THAT(all.out, HasSubstr("- wgmma instructions are GH100's"));
    const Outcome core = kbench("list metrics --chip GH100 --set core");
    EXPECT_THAT(core.out, HasSubstr("achieved_occupancy"));
    EXPECT_THAT(core.out, Not(HasSubstr("sass_ffma")));
#ifdef KBENCH_HAVE_CUDA
    EXPECT_THAT(core.out, ContainsRegex("core +13 +1\n"));
#else
    EXPECT_THAT(core.out, HasSubstr("passes are unknown: this build has no CUDA"));
#endif
    expect_refusal("list metrics --chip GH1000", "unknown chip 'GH1000'; did you mean GH100?");
    expect_refusal("list metrics --chip GH100 --set cores", "unknown metric set 'cores'; did you mean core?");
    expect_refusal("list metrics --chip", "--chip");
    if (kbench("list metrics").exit_code != 0) expect_refusal("list metrics", "name one with --chip: GA100, ");
}

TEST_F(Cli, ProvidersAreListedWithWhatTheyComputeInEachPrecision) {
    EXPECT_THAT(kbench("list providers").out, ContainsRegex("(^|\n)cpu +blas +GEMMs and attention"));
    const Outcome ops = kbench("list providers --ops");
    EXPECT_EQ(ops.exit_code, 0) << ops.err;
    EXPECT_THAT(ops.out, ContainsRegex("\nwhere +provider +op +fp16 +bf16 +tf32 +fp32 +fp64\n|^where +provider"));
    EXPECT_THAT(ops.out, ContainsRegex("\ncpu +blas +gemm +- +- +- +yes +yes\n"));
    EXPECT_THAT(ops.out, ContainsRegex("\ncpu +reference +attention_context +[a-z-]+ +[a-z-]+ +- +yes +yes\n"));
    EXPECT_THAT(ops.out, Not(ContainsRegex("\ncpu +native +gemm"))) << "what it computes in no precision is left out";
}

TEST_F(Cli, MachinesAreListedWithTheirSources) {
    const Outcome all = kbench("list machines");
    EXPECT_EQ(all.exit_code, 0) << all.err;
    EXPECT_THAT(all.out, ContainsRegex("\nNVIDIA data centre GPU +h200-sxm +NVIDIA H200 SXM 141 GB +4,800 GB/s "
                                       "+66.9 TFLOP/s +989 TFLOP/s\n"));
    EXPECT_THAT(all.out, ContainsRegex("p100-sxm2 .* +732 GB/s +10.6 TFLOP/s +21.2 TFLOP/s\n"));
    EXPECT_THAT(all.out, ContainsRegex("xeon-cascade-lake .* 4.30 TFLOP/s +-\n"));
    EXPECT_LT(all.out.find(" v100-pcie "), all.out.find("\nNVIDIA GeForce GPU  rtx-3090 "));
    EXPECT_LT(all.out.find(" rtx-5090 "), all.out.find("\nIntel CPU"));
    const Outcome old = kbench("list machines --id p100-sxm2");
    EXPECT_THAT(old.out, ContainsRegex("\n  note +No tensor cores: "));
    EXPECT_THAT(old.out, HasSubstr("kbench does not run on it"));
    const Outcome one = kbench("list machines --id l4");
    EXPECT_THAT(one.out, AllOf(HasSubstr("half of that dense"), Not(HasSubstr("  note"))));
    const std::filesystem::path mine = directory_.write("mine.json", R"({"id": "mine", "name": "Mine", "kind": "cpu",
        "matches": ["Mine"], "roofs": [{"ceiling": "cpu_dram_read", "value": 50, "source": "a guess"}]})");
    EXPECT_THAT(kbench("list machines --id " + mine.string()).out,
                ContainsRegex("cpu_dram_read +50.00 +GB/s +a guess\n"));
    expect_refusal("list machines --id l5", "unknown machine 'l5'; did you mean l4?");
    expect_refusal("list machines --id A100",
                   "did you mean a100-pcie-80gb, a100-sxm4-40gb or a100-sxm4-80gb? (`kbench list machines`, or");
    expect_refusal("list machines --id none.json", "none.json: cannot be read");
    expect_refusal("list machines --id " + directory_.write("bad.json", "{}").string(), "bad.json: 'id' is missing");
    expect_refusal("list machines --all", "`kbench list machines --help` lists the options");
}

TEST_F(Cli, ATableOfACommittedResultNeedsNothingButTheFile) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/gpu";
    const Outcome layers =
        kbench("table " + recorded + "/result.json.gz --by layer --fold --point 0 -c steps,layer,tc --csv");
    EXPECT_EQ(layers.exit_code, 0) << layers.err;
    EXPECT_TRUE(layers.out.starts_with("steps,layer,tc\n1,wte+wpe,0\n36,h.*.ln_1,0\n36,h.*.attn.c_attn,1\n"))
        << layers.out;
    EXPECT_EQ(kbench("table " + recorded + " --by layer --fold --point 0 -c steps,layer,tc --csv").out, layers.out)
        << "the directory stands for its result.json";
    const Outcome slowest = kbench("table " + recorded + " --sort sil --top 3 -w 120");
    EXPECT_EQ(slowest.exit_code, 0) << slowest.err;
    EXPECT_EQ(std::count(slowest.out.begin(), slowest.out.end(), '\n'), 4) << slowest.out;
    EXPECT_THAT(kbench("list columns").out, HasSubstr("silicon time"));
    EXPECT_THAT(kbench("table --help").out, HasSubstr("--columns"));
}

TEST_F(Cli, ATableSaysWhichPointsHaveNoSteps) {
    const std::string run = (directory_ / "run").string();
    kbench("--config " + tiny() + " --backend cpu --precision tf32,fp32 --quick --out " + run);
    const Outcome table = kbench("table " + run + " -c point,op");
    EXPECT_EQ(table.exit_code, 0);
    EXPECT_THAT(table.out, Not(HasSubstr("tf32")));
    EXPECT_THAT(table.err, HasSubstr("point 0 has no steps: skipped: "));
    EXPECT_THAT(kbench("table " + run + " --by point").out, HasSubstr("skipped"));
}

TEST_F(Cli, ATablesMistakesGetOneLineAndExitTwo) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/gpu/result.json.gz";
    expect_refusal("table", "no RESULT");
    expect_refusal("table /nowhere/result.json", "/nowhere/result.json: cannot be read");
    expect_refusal("table " + recorded + " -c op,tme_us", "no column 'tme_us'; did you mean time_us?");
    expect_refusal("table " + recorded + " --point 10", "has points 0 to 9");
    expect_refusal("table " + recorded + " -w 20", "these columns need at least");
    expect_refusal(
        "table " + directory_.write("cut.json", gunzip(read_text(recorded), recorded).substr(0, 4000)).string(),
        "not JSON");
    expect_refusal("table " + directory_.write("foreign.json", "{\"a\": 1}").string(), "not a kbench result");
}

TEST_F(Cli, ComparesTheRecordedGpuWithItsHost) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/";
    const Outcome both =
        kbench("compare " + recorded + "gpu " + recorded + "cpu/result.json.gz --price gpu=3.5,cpu=0.8");
    EXPECT_EQ(both.exit_code, 0) << both.err;
    EXPECT_THAT(both.out, HasSubstr("End to end: gpt2-large batch 1 seq 1024"));
    EXPECT_THAT(both.out, HasSubstr("$/1M sequences"));
    EXPECT_EQ(both.err, "");
    const Outcome json = kbench("compare " + recorded + "gpu " + recorded + "cpu --format json --top 2");
    EXPECT_TRUE(json.out.starts_with("{\n  \"runs\"")) << json.out.substr(0, 80);
}

TEST_F(Cli, EveryComparisonHasAPage) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/fp16";
    for (const auto& [command, told] :
         {std::pair{"compare " + recorded + " " + recorded + "-repeat", "End to end"},
          {"report " + recorded + " --what-if a100-sxm4-80gb", "What if: "},
          {"claim --model gpt2-large --seq 1024 --machine h100-sxm --latency 31ms", "Bandwidth-bound?"}}) {
        const Outcome page = kbench(command + " --format html");
        EXPECT_EQ(page.exit_code, 0) << command << page.err;
        EXPECT_TRUE(page.out.starts_with("<!doctype html>")) << command;
        EXPECT_THAT(page_document(page.out).dump(), HasSubstr(told)) << command;
    }
}

TEST_F(Cli, ARegressionIsExitOneAndALineOnStderr) {
    const std::string recorded = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/";
    const Outcome slower = kbench("compare " + recorded + "gpu " + recorded + "cpu --fail-above 3% --format json");
    EXPECT_EQ(slower.exit_code, 1);
    EXPECT_EQ(std::count(slower.err.begin(), slower.err.end(), '\n'), 10)
        << "four slower points, six that only the first result has: " << slower.err;
    EXPECT_TRUE(slower.err.starts_with("kbench: regression: gpt2-large fp16 batch 1 seq 1024: cpu takes "))
        << slower.err;
    const Outcome repeated = kbench("compare " + recorded + "fp16 " + recorded + "fp16-repeat --fail-above 3%");
    EXPECT_EQ(repeated.exit_code, 0) << repeated.err;
    EXPECT_THAT(repeated.out, HasSubstr("cannot tell"));
}

TEST_F(Cli, AComparisonsMistakesGetOneLineAndExitTwo) {
    const std::string gpu = std::string(KBENCH_SOURCE_DIR) + "/results/h200-2026-11-21/gpu";
    expect_refusal("compare " + gpu, "1 result: name two or more");
    expect_refusal("compare " + gpu + " /nowhere", "/nowhere: cannot be read");
    expect_refusal("compare " + gpu + " " + directory_.write("foreign.json", "{\"a\": 1}").string(),
                   "not a kbench result");
    expect_refusal("compare " + gpu + " " + gpu + " --name a,b --price c=1", "no result is called 'c'; they are a, b");
    const std::string run = (directory_ / "run").string();
    kbench("--config " + tiny() + " --backend cpu --quick --out " + run);
    expect_refusal("compare " + gpu + " " + run, "no point in common: ");
}

TEST_F(Cli, ListsAndDoctorAnswer) {
    const std::string models = kbench("list models").out;
    std::istringstream lines(models);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_THAT(models, AllOf(HasSubstr("774030080"), HasSubstr("batch, seq to 1024 (n_ctx), attention"),
                              HasSubstr("batch, frames, cell")));
    EXPECT_THAT(kbench("list ops").out, HasSubstr("attention_context"));
    EXPECT_THAT(kbench("list providers").out, HasSubstr("onednn"));
    const Outcome doctor = kbench("doctor");
    // This machine decides which code it is; the last line says why.
    EXPECT_EQ(doctor.exit_code == 0, doctor.out.ends_with("nothing to mend\n")) << doctor.out;
    EXPECT_EQ(doctor.exit_code == 3, doctor.out.find("\ncannot be used: ") != std::string::npos) << doctor.out;
    EXPECT_THAT(doctor.out, HasSubstr("cpu fp32"));
    EXPECT_THAT(doctor.out, HasSubstr("cpu memory traffic"));
    EXPECT_THAT(kbench("--help").out, HasSubstr("kbench run"));
    EXPECT_THAT(kbench("--version").out, HasSubstr("kbench 0."));
}

TEST_F(Cli, CeilingsAreMeasuredOnceAndPartOfEveryRun) {
    directory_.write("cache/ceilings.json", "{\"schema\"");
    Outcome first = kbench("ceilings --backend cpu --seconds 0.1 --format json");
    EXPECT_THAT(first.err, HasSubstr("ceilings.json ignored: ")) << "it is damaged";
    const auto was_starved = [&] { return first.err.find("lacked its CPUs") != std::string::npos; };
    for (int again = 0; again < 2 && was_starved(); ++again)
        first = kbench("ceilings --backend cpu --seconds 0.1 --format json");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    if (was_starved()) GTEST_SKIP() << "not remembered beside so much other work: " << first.err;
    EXPECT_THAT(first.out, HasSubstr("\"name\": \"cpu_dram_triad\""));
    const Outcome second = kbench("ceilings --backend cpu --format json");
    EXPECT_EQ(second.out, first.out) << "the remembered ones, with their time";
    EXPECT_EQ(second.err, "") << "the damaged file was replaced";

    const std::string run = (directory_ / "run").string();
    const Outcome outcome = kbench("--config " + tiny_config() + " --backend cpu --quick --format json --out " + run);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto measured_at = [](const std::string& text) {
        const std::size_t at = text.find("\"measured_at\": \"");
        return at == text.npos ? "none" : text.substr(at, 40);
    };
    EXPECT_EQ(measured_at(outcome.out), measured_at(first.out));
    EXPECT_THAT(kbench("table " + run + " -c op,isa,isa_peak_pct --csv").out, HasSubstr("isa_peak_pct"));
}

TEST_F(Cli, ARunGoesOnWithoutCeilings) {
    const std::string run = (directory_ / "run").string();
    const Outcome outcome = kbench("--config " + tiny() + " --backend cpu --quick --format json --out " + run);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("not asked for (--ceilings none)"));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "cache/ceilings.json"));
    expect_refusal("--model gpt2 --ceilings some", "--ceilings 'some': must be one of auto, measure, none");
    expect_refusal("ceilings --format xml", "--format 'xml': must be one of text, json, markdown");
    expect_refusal("ceilings --seconds 0", "must be a time of at least 100ms");
}

}  // namespace
}  // namespace kbench
