// The microbenchmarks that a command line asks for: op x provider x precision x shape x state of the caches.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plan/fuse.h"
#include "bench/plan/provider.h"
#include "kbench/axes.h"
#include "kbench/precision.h"
#include "models/problem.h"

namespace kbench {

/// What a run finds in the caches: nothing of its operands, or whatever the run before it left.
enum class CacheState { cold, hot };
inline constexpr std::string_view cache_state_names[] = {"cold", "hot"};
constexpr std::string_view name(CacheState state) { return cache_state_names[static_cast<int>(state)]; }

/// A problem as it was asked for: by a shape, a file, a model or a suite.
struct AskedProblem {
    std::string op, shape;
    Step problem;
};

struct MicroCase {
    AskedProblem asked;
    std::string provider;
    Precision precision;
    CacheState cache;
    Direction direction() const { return asked.problem.direction; }
    /// "gemm/cublaslt/fp16/fwd/m1024n3840k1280/cold"
    std::string name() const;
};

/// Problems of text, one a line: op, shape and, where it is not fwd, a direction; "#" begins a comment. `source` names
/// the text in errors. Throws UsageError with the line's number.
std::vector<AskedProblem> parse_problems(std::string_view text, std::string_view source);

/// A file of suites/: a published collection of shapes.
struct SuiteFile {
    std::string_view name, text;
};
std::span<const SuiteFile> suite_files();
/// Throws UsageError that lists the suites.
std::vector<AskedProblem> suite_problems(std::string_view name);
/// How what is computed of ops among `cases` differs from what the suite asks for: lines "#! OP...: text" of its file.
std::vector<std::string> suite_notes(std::string_view name, std::span<const MicroCase> cases);

/// Values by axis.
using AxisLists = std::map<std::string, std::vector<AxisValue>, std::less<>>;

/// The distinct ops of `model` at every combination of `asked`. An axis that is left out has its usual count, or all
/// of its words: attention fused and unfused, each cell; phases only the usual one. `with_loss`: also the ops of
/// training's loss. Throws UsageError for an axis that the model or each phase asked for lacks.
std::vector<AskedProblem> model_problems(std::string_view model, const AxisLists& asked, bool with_loss = false);

/// Every combination. `names` of providers: all of them, whether they compute an op or not; empty: those that compute
/// the problem in one precision at least and need no request.
std::vector<MicroCase> make_cases(std::span<const AskedProblem> problems, const Providers& providers,
                                  std::span<const std::string> names, std::span<const Precision> precisions,
                                  std::span<const CacheState> caches);

/// The steps of a model of make_problem_model, each computing one run of `ops_a_run` ops. Throws Unsupported with the
/// reason where `provider` does not compute all of a run in one step.
std::vector<AssignedStep> assign_problem(const Model& model, std::size_t ops_a_run, std::string_view provider,
                                         Precision precision, const Providers& providers, std::int64_t column_multiple);

}  // namespace kbench
