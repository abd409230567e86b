// Small runs of a program that measured itself: known times, on one GPU and on two.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "analysis/result/scopes.h"

namespace kbench {

/// A scope as prof.json has it; `times`: the mean and its interval, ms.
inline std::string scope_text(const std::string& label, int start, int end, double offset, double ms,
                              const std::string& more = "\"occurrence\": 0, \"in_graph\": false") {
    return fmt::format(
        R"({{"label": "{}", {}, "start_index": {}, "end_index": {}, "avg_measured_time_ms": {}, "ci_low": {}, "ci_high": {}, "n": 50, "avg_iter_start_to_event_start_time_ms": {}, "measured_times_ms": [{}]}})",
        label, more, start, end, ms, 0.99 * ms, 1.01 * ms, offset, ms);
}

/// prof.json of a step of 10 ms times `slower`, whose exchange between GPUs takes `exchange_ms`.
inline std::string profile_text(int rank = -1, double slower = 1, double exchange_ms = 0,
                                const std::string& host = "node1") {
    std::string scopes = scope_text("forward", 0, 3, 0.5, 3 * slower) + ",\n" +
                         scope_text("attention", 1, 2, 0.75, 1.25 * slower) + ",\n" +
                         scope_text("layer", 4, 5, 4, 2 * slower) + ",\n" +
                         scope_text("layer", 6, 7, 6.5, 1.5 * slower, R"("occurrence": 1, "in_graph": false)");
    std::string second = scope_text("copy", 8, 9, 0, 0.125) + ",\n" +
                         scope_text("update", 0, 1, 8.5, 1, R"("occurrence": 0, "in_graph": true)");
    if (exchange_ms > 0) second += ",\n" + scope_text("exchange", 10, 11, 5, exchange_ms);
    const double ms = (10 + exchange_ms) * slower;
    const std::string mean = fmt::format(
        R"("avg_iter_time_ms": {}, "iter_ci_low": {}, "iter_ci_high": {}, "iter_n": 300)", ms, ms - 0.02, ms + 0.02);
    return fmt::format(
        R"({{"format": "kbench.scopes/1", "host_name": "{}", "rank": {}, "pid": 1, "arguments": ["build/training_loop", "--steps", "1000"], "iterations": {{"first": 10, "end": null}}, "complete": true, {},
"devices": [{{"id": 0, "name": "A GPU", {}, "iter_times_ms": [10], "notes": []}}],
"timeline": {{"0": {{"stream 0": [{}], "stream 1": [{}]}}}}}})",
        host, rank < 0 ? "null" : std::to_string(rank), mean, mean, scopes, second);
}

inline ScopeRun one_gpu() { return {"one", {parse_scope_profile(profile_text(), "one/prof.json")}}; }
inline ScopeRun two_gpus() {
    return {"two",
            {parse_scope_profile(profile_text(0, 1.1, 0.75), "two/prof.0.json"),
             parse_scope_profile(profile_text(1, 1.2, 0.5, "node2"), "two/prof.1.json")}};
}

}  // namespace kbench
