// Command lines from a grammar: the first byte names the command, each other one an option or a value. Bytes that mean
// no such thing are text of their own. Nothing is run: only what parsing and resolving do.
#include <iterator>
#include <string>
#include <vector>

#include "bench/command/ceilings_options.h"
#include "bench/command/claim_options.h"
#include "bench/command/compare_options.h"
#include "bench/command/merge_options.h"
#include "bench/command/micro_options.h"
#include "bench/command/options.h"
#include "bench/command/profile_options.h"
#include "bench/command/repeated/ab_options.h"
#include "bench/command/report_options.h"
#include "bench/command/study/study_options.h"
#include "bench/command/table_options.h"
#include "bench/command/training/train_options.h"
#include "kbench/error.h"
#include "tests/fuzz/targets.h"

namespace kbench::fuzz {
namespace {

using Arguments = std::vector<std::string>;

constexpr void (*commands[])(const Arguments&) = {
    [](const Arguments& a) { parse_run(a); },
    [](const Arguments& a) {
        const ParsedMicro parsed = parse_micro(a);
        if (parsed.help.empty()) asked_problems(parsed.request);
    },
    [](const Arguments& a) { parse_study(a); },
    [](const Arguments& a) { parse_train(a); },
    [](const Arguments& a) { parse_table(a); },
    [](const Arguments& a) { parse_compare(a); },
    [](const Arguments& a) { parse_report(a); },
    [](const Arguments& a) { parse_claim(a); },
    [](const Arguments& a) { parse_merge(a); },
    [](const Arguments& a) { parse_ab(a); },
    [](const Arguments& a) { parse_ceilings_command(a); },
    [](const Arguments& a) { parse_schedule_options(a); },
    [](const Arguments& a) { parse_scope_report(a); },
};

constexpr const char* values[] = {"",
                                  "-",
                                  "--",
                                  ",",
                                  "1",
                                  "0",
                                  "-1",
                                  "4,1",
                                  "1e308",
                                  "nan",
                                  "inf",
                                  "3%",
                                  "max",
                                  "all",
                                  "none",
                                  "fp16",
                                  "fp32",
                                  "gpt2",
                                  "mlp",
                                  "cuda",
                                  "cpu",
                                  "auto",
                                  "gemm",
                                  "lstm",
                                  "fwd",
                                  "train",
                                  "adamw",
                                  "=",
                                  "a=b",
                                  "1/2",
                                  "31ms",
                                  "8m",
                                  "x.npy",
                                  "/",
                                  ".",
                                  "/dev/null",
                                  "\x1b[1m",
                                  "m8n8k8",
                                  "deepspeech2",
                                  "9223372036854775807",
                                  "4611686018427387905",
                                  "r4w4+bias"};

/// Every option of every command.
const std::vector<std::string>& options() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        const auto add = [&](const auto& table) {
            for (const auto& option : table) all.push_back(option.name);
        };
        add(run_options());
        add(micro_options());
        add(study_options());
        add(table_options());
        add(compare_options());
        add(report_options());
        add(train_options());
        add(schedule_options());
        return all;
    }();
    return names;
}

}  // namespace

void arguments(std::string_view input) {
    if (input.empty()) return;
    const auto command = commands[static_cast<unsigned char>(input[0]) % std::size(commands)];
    Arguments typed;
    for (std::size_t i = 1; i < input.size() && typed.size() < 40; ++i) {
        const auto byte = static_cast<unsigned char>(input[i]);
        if (byte < 0x60)
            typed.push_back(options()[(byte * 7u + i) % options().size()]);
        else if (byte < 0xc0)
            typed.emplace_back(values[(byte - 0x60u) % std::size(values)]);
        else if (!typed.empty() && byte < 0xe0)
            typed.back() += "=" + std::string(values[(byte - 0xc0u) % std::size(values)]);
        else
            typed.emplace_back(input.substr(i, byte & 0xfu));
    }
    try {
        command(typed);
    } catch (const Error&) {
    }
}

}  // namespace kbench::fuzz
