// What is known only of a program that kbench did not build itself: how it was run, and what its framework calls a
// step.
//
//     if (point.program)  // a Point, result.h
//         std::cout << point.program->command << ": the GPU waits for the host for " << point.program->host_wait_ms
//                   << " ms of " << point.program->bare_ms << " ms\n";
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kbench {

/// The call of a framework that launched a step's kernels, as the framework names it.
struct FrameworkCall {
    std::string module;      ///< class of the module: "Conv1D"
    std::string op;          ///< "aten::linear"
    std::string sub;         ///< the innermost call inside of `op`: "aten::addmm"
    std::string parameters;  ///< sizes of the inputs: "[[3840], [1024, 1280], [1280, 3840]]"
    std::string line;        ///< the line of the program that called, "bench.py:40"
    /// The framework's number of the call. A backward call also has the number of the forward call that it belongs to.
    std::optional<std::int64_t> sequence = std::nullopt, forward_sequence = std::nullopt;
    std::int64_t thread = 0;  ///< the host's thread that launched
    bool operator==(const FrameworkCall&) const = default;
};

/// How a program ran, and what its iteration is made of. Times of the parts are means over its recorded iterations
/// without the shortest and the longest quarter, so that they add up; milliseconds.
struct ProgramRun {
    std::string command;
    int processes = 1;
    std::int64_t iterations = 0;  ///< recorded
    std::int64_t launches = 0;    ///< calls of an iteration that launch kernels or graphs
    std::int64_t kernels = 0, copies = 0;
    double recorded_ms = 0;              ///< an iteration with records
    double bare_ms = 0;                  ///< an iteration without, the median; 0: not measured
    double busy_ms = 0;                  ///< time in which the GPU worked; work on several streams counts once
    double host_wait_ms = 0;             ///< idle, and its next work was launched only meanwhile
    double queued_ms = 0;                ///< idle although its next work had been launched before
    std::string iterations_unavailable;  ///< why no iteration was found; empty when one was
    bool named = false;                  ///< whether the framework's calls were recorded
    std::vector<std::string> notes;      ///< what the user should know, a line each
    bool operator==(const ProgramRun&) const = default;
};

}  // namespace kbench
