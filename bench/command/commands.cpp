// The table of commands: what main runs, help lists and shells complete.
#include "bench/command/attach/attach_options.h"
#include "bench/command/ceilings_options.h"
#include "bench/command/claim_options.h"
#include "bench/command/command.h"
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

namespace kbench {

std::span<const Command> commands() {
    static const Command table[] = {
        {"run", "run a model: verify, time, write result.json and reports (the default command)", run_command,
         [] { return help_rows(run_options()); }},
        {"micro",
         "single ops by provider, precision and shape, on Google Benchmark: verified, timed, set against roofs",
         micro_command, [] { return help_rows(micro_options()); }},
        {"study", "bottlenecks, batch, precision and direction of a model in one report", study_command,
         [] { return help_rows(study_options()); }},
        {"train", "train a model: forward, loss, backward and AdamW, step after step", train_command,
         [] { return help_rows(train_options()); }},
        {"attach", "any program, unchanged: what its time on the GPU is made of, by layer and kernel", attach_command,
         [] { return help_rows(attach_options()); }},
        {"table", "rows and columns of a result, to choose, group, sort and export; measures nothing", table_command,
         [] { return help_rows(table_options()); }},
        {"compare", "results side by side: ratios, is it bandwidth, cost, regressions; measures nothing",
         compare_command, [] { return help_rows(compare_options()); }},
        {"ab", "two commands, programs or options in turn: which is faster, for certain", ab_command,
         [] { return help_rows(ab_options()); }},
        {"claim", "a published time against what its machine can do; measures nothing", claim_command,
         [] { return help_rows(claim_options()); }},
        {"merge", "results of points that were run apart, joined into one; measures nothing", merge_command,
         [] { return help_rows(merge_options()); }},
        {"report", "report.html and other reports of a result, drawn again; measures nothing", report_command,
         [] { return help_rows(report_options()); }},
        {"profile", "programs that measure themselves: which of their scopes, and what they measured", profile_command,
         profile_rows, profile_words},
        {"ceilings", "the roofs of this machine: bandwidths and FLOP/s, remembered or measured now", ceilings_command,
         [] { return help_rows(ceilings_options()); }},
        {"list", "what there is to choose from: models, ops, providers, options, columns, metrics, ceilings",
         list_command, nullptr, list_words},
        {"doctor", "what this machine has, what is missing, and what that costs", doctor_command, doctor_rows},
        {"completion", "completion for bash, zsh or fish, or the man page, on stdout", completion_command, nullptr,
         completion_words},
    };
    return table;
}

}  // namespace kbench
