// What people mistype or misremember, and the one line that answers: a row each.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "tests/bench/program.h"

namespace kbench {
namespace {

/// Words in capitals stand for what lies there: a file that is cut off, a folder, a file, a result.
struct Mistake {
    std::string_view command, answer;
};

// clang-format off
constexpr Mistake mistakes[] = {
    {"run --modle gpt2", "did you mean --model?"},
    {"run --model gpt3", "unknown model 'gpt3'; did you mean gpt2?"},
    {"run --model gtp2-large", "did you mean gpt2-large?"},
    {"run gpt2", "'gpt2' is a model: kbench run --model gpt2"},
    {"gpt2", "'gpt2' is a model, not a command: kbench --model gpt2"},
    {"study gpt2-large", "'gpt2-large' is a model: kbench study --model gpt2-large"},
    {"micor --op gemm", "did you mean micro?"},
    {"version", "did you mean --version?"},
    {"help rnu", "unknown command 'rnu'; must be one of run,"},
    {"--model gpt2 --model gpt2-large", "--model is given twice"},
    {"--model gpt2 --precision int8", "--precision 'int8': must be one of fp16,"},
    {"--model gpt2 --precision fp61", "did you mean fp64?"},
    {"--model gpt2 --seq 2048", "--seq 2048: over gpt2's n_ctx 1024"},
    {"--model gpt2 --seq 0", "--seq '0': must be a whole number of at least 1"},
    {"--model gpt2 --seq 1e3", "--seq '1e3': must be a whole number"},
    {"--model gpt2 --batch 1,,2", "--batch '': must be max or a whole number"},
    {"--model gpt2 --batch -1", "--batch '-1': must be max or a whole number"},
    {"--model gpt2 --batch 1,2,1", "is asked for twice"},
    {"--model gpt2 --backend gpu", "did you mean cuda?"},
    {"--model gpt2 --backend tpu", "One of auto, cuda, cpu"},
    {"--model gpt2 --backend cpu --sms 32", "--sms 32: a CPU has no SMs"},
    {"--model gpt2 --backend cpu --device 0", "--device 0: chooses a GPU"},
    {"--model gpt2 --backend cpu --provider gemm=foo", "no provider 'foo'; must be one of onednn"},
    {"--model gpt2 --backend cpu --provider gem=onednn", "unknown op 'gem'; did you mean gemm?"},
    {"--model gpt2 --backend cpu --dry-run --provider gemm=foo", "no provider 'foo'"},
    {"--model gpt2 --time-budget 10x", "must be a time of at least 10ms, such as"},
    {"--model gpt2 --time-budget -3", "--time-budget '-3': must be a time"},
    {"--model gpt2 --backend cpu --counters coer", "--counters 'coer': a CPU has the set core"},
    {"--model gpt2 --backend cpu --metrics nope", "--metrics 'nope': metrics are a GPU's"},
    {"--model gpt2 --backend cpu --weights nowhere.safetensors", "nowhere.safetensors: cannot be read"},
    {"--model gpt2 --backend cpu --tokens nowhere.npy", "nowhere.npy: cannot be read"},
    {"--model gpt2 --config tiny.json", "--model and --config exclude each other"},
    {"--config nowhere.json", "nowhere.json: cannot be read: No such file"},
    {"--config BAD", "bad.json: not JSON: parse error at line 2"},
    {"--config DIR", "is a directory; give the config.json in it"},
    {"--model gpt2 --out FILE", "Not a directory"},
    {"--model gpt2 --format csv", "--format 'csv': must be one of text, json"},
    {"--model gpt2 --direction backward", "--direction 'backward': must be one of fwd, bwd, train"},
    {"--model gpt2 --attention flash", "--attention 'flash': must be one of fused, unfused"},
    {"--model gpt2 --resume", "--resume: name the sweep's directory with --out"},
    {"--model gpt2 --backend cpu --threads 0", "--threads '0': must be a whole number"},
    {"--model gpt2 --backend cpu --threads 99999", "--threads 99999: this process may use"},
    {"micro --op gem", "unknown op 'gem'; did you mean gemm?"},
    {"micro --op gemm --shape 1024x1024", "must be written like m1024n3840k1280"},
    {"micro --op gemm --shape m0n1k1", "shape 'm0n1k1' of gemm: must be written like"},
    {"micro --backend cpu --op gemm --provider onedn", "did you mean onednn?"},
    {"table", "no RESULT: name a result.json"},
    {"table nowhere", "nowhere: cannot be read; name a result.json"},
    {"table RESULT -c occ", "no column 'occ'; did you mean occ_"},
    {"table RESULT --by layers", "--by 'layers': did you mean layer?"},
    {"table RESULT --sort tme", "no column 'tme'; did you mean time?"},
    {"compare RESULT", "1 result: name two or more"},
    {"compare RESULT nowhere", "nowhere: cannot be read"},
    {"compare RESULT RESULT --fail-above five", "--fail-above 'five': must be a share such as 3%"},
    {"report", "no RESULT: name a result.json"},
    {"report BAD", "bad.json: not JSON: parse error at line 2"},
    {"report RESULT --format pdf", "--format 'pdf': must be one of all, html"},
    {"report RESULT --what-if a100", "did you mean a100-pcie-80gb, a100-sxm4-40gb or a100-sxm4-80gb?"},
    {"claim", "--model is missing"},
    {"claim --model gpt2 --latency 31ms --machine 4090", "did you mean rtx-4090?"},
    {"claim --model gpt2 --machine a100-sxm4-40gb --latency fast", "--latency 'fast': must be a time"},
    {"list machine", "cannot list 'machine'; did you mean machines?"},
    {"list metrics --chip GH999", "unknown chip 'GH999'; must be one of GA100"},
    {"ceilings --seconds 0", "--seconds '0': must be a time of at least 100ms"},
    {"study --model gpt2 --budget soon", "--budget 'soon': must be a time"},
    {"train --model gpt2 --steps 0", "--steps '0': must be a whole number"},
    {"train --model gpt2 --steps 1 --save FILE/x.st", "is no directory"},
    {"merge", "--out is missing"},
    {"doctor --nois", "did you mean --noise?"},
    {"doctor --threads 1 --noise", "--noise: comes first and alone"},
    {"completion powershell", "must be one of bash, zsh, fish, man"},
};
// clang-format on

class Mistakes : public Program {
  protected:
    std::string with_paths(std::string text) {
        const std::pair<std::string, std::string> places[] = {
            {"BAD", directory_.write("bad.json", "{\"a\": \n").string()},
            {"DIR", (directory_ / "").string()},
            {"FILE", directory_.write("file", "x").string()},
            {"RESULT", KBENCH_SOURCE_DIR "/results/h100-2026-11-27/alike-b1.json.gz"}};
        for (const auto& [word, path] : places)
            for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += path.size())
                text.replace(at, word.size(), path);
        return text;
    }
};

TEST_F(Mistakes, AreAnsweredInOneLineWithExitCodeTwo) {
    for (const Mistake& mistake : mistakes)
        expect_refusal(with_paths(std::string(mistake.command)), std::string(mistake.answer));
    EXPECT_FALSE(std::filesystem::exists(directory_ / "cache")) << "something was measured before a refusal";
}

}  // namespace
}  // namespace kbench
