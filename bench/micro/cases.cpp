// Problems from text, models and suites, and who is asked to compute them.
#include "bench/micro/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "kbench/error.h"
#include "models/ops/table.h"
#include "models/registry.h"

namespace kbench {
namespace {

AskedProblem asked(const Step& problem) { return {std::string(op_name(problem)), shape_text(problem), problem}; }

/// Whether `provider` computes the problem in some precision.
bool computes(const Step& problem, const Provider& provider) {
    return std::ranges::any_of(all_precisions,
                               [&](Precision precision) { return provider.unsupported(problem, precision).empty(); });
}

/// Every combination of the words that axes of `model` have, on top of `point`.
std::vector<ModelPoint> with_words(const ModelSpec& model, const ModelPoint& point) {
    std::vector<ModelPoint> points{point};
    for (const ModelAxis& axis : model.axes) {
        if (axis.is_count()) continue;
        std::vector<ModelPoint> more;
        for (const std::string_view word : axis.words)
            for (ModelPoint one : points) {
                one.words[std::string(axis.name)] = word;
                more.push_back(std::move(one));
            }
        points = std::move(more);
    }
    return points;
}

}  // namespace

std::string MicroCase::name() const {
    return fmt::format("{}/{}/{}/{}/{}/{}", asked.op, provider, kbench::name(precision), kbench::name(direction()),
                       asked.shape, kbench::name(cache));
}

std::vector<AskedProblem> parse_problems(std::string_view text, std::string_view source) {
    std::vector<AskedProblem> problems;
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        line.resize(std::min(line.size(), line.find('#')));
        AskedProblem problem;
        std::istringstream words(line);
        std::string more;
        words >> problem.op >> problem.shape >> more;
        if (problem.op.empty()) continue;
        const auto refuse = [&](const std::string& why) {
            throw UsageError(fmt::format("{} line {}: {}", source, number, why));
        };
        if (problem.shape.empty() || !more.empty())
            refuse(fmt::format("'{}': must be an op and a shape, such as gemm m1024n3840k1280", line));
        try {
            problem.problem = parse_problem(problem.op, problem.shape);
        } catch (const UsageError& error) {
            refuse(error.what());
        }
        problems.push_back(std::move(problem));
    }
    if (problems.empty()) throw UsageError(fmt::format("{}: holds no problem", source));
    return problems;
}

std::vector<AskedProblem> suite_problems(std::string_view name) {
    std::string names;
    for (const SuiteFile& file : suite_files()) {
        const std::string_view suite = file.name.substr(0, file.name.rfind('.'));
        if (suite == name) return parse_problems(file.text, fmt::format("suite {}", name));
        names += fmt::format("{}{}", names.empty() ? "" : ", ", suite);
    }
    throw UsageError(fmt::format("--suite '{}': must be one of {}", name, names));
}

std::vector<AskedProblem> model_problems(std::string_view model, std::span<const std::int64_t> batches,
                                         std::span<const std::int64_t> seqs) {
    const ModelSpec& spec = find_model(model);
    std::vector<AskedProblem> problems;
    const auto add = [&](const ModelPoint& point) {
        for (const Step& problem : problems_of(spec.build(point)))
            if (std::ranges::none_of(problems, [&](const AskedProblem& p) { return p.problem == problem; }))
                problems.push_back(asked(problem));
    };
    const bool has_seq = spec.axis("seq") != nullptr;
    for (const std::int64_t seq : has_seq ? seqs : seqs.first(1))
        for (const std::int64_t batch : batches) {
            ModelPoint point{{{"batch", batch}}};
            if (has_seq) point.counts["seq"] = seq;
            for (const ModelPoint& one : with_words(spec, point)) add(one);
        }
    std::ranges::stable_sort(problems, {},
                             [](const AskedProblem& p) { return index_of(p.problem.ops.front().kind()); });
    return problems;
}

std::vector<MicroCase> make_cases(std::span<const AskedProblem> problems, const Providers& providers,
                                  std::span<const std::string> names, std::span<const Precision> precisions,
                                  std::span<const CacheState> caches) {
    std::vector<std::string> known;
    for (const auto& provider : providers) known.emplace_back(provider->name);
    for (const std::string& name : names)
        if (std::ranges::find(known, name) == known.end())
            throw UsageError(
                fmt::format("--provider '{}': this backend has no such provider ({})", name, fmt::join(known, ", ")));
    std::vector<MicroCase> cases;
    for (const AskedProblem& problem : problems)
        for (const auto& provider : providers) {
            const bool asked_for = std::ranges::find(names, provider->name) != names.end();
            if (!names.empty() && !asked_for) continue;
            if (names.empty() && provider->on_request_only) continue;
            if (names.empty() && !computes(problem.problem, *provider)) continue;
            for (const Precision precision : precisions)
                for (const CacheState cache : caches)
                    cases.push_back({problem, std::string(provider->name), precision, cache});
        }
    return cases;
}

std::vector<AssignedStep> assign_problem(const Model& model, std::size_t ops_a_run, std::string_view provider,
                                         Precision precision, const Providers& providers,
                                         std::int64_t column_multiple) {
    const auto chosen = std::ranges::find(providers, provider, [](const auto& p) { return std::string_view(p->name); });
    std::vector<AssignedStep> assigned;
    for (const StepOfModel& step : steps_of(model, ops_a_run, column_multiple)) {
        if (const std::string why = (*chosen)->unsupported(step.step, precision); !why.empty()) throw Unsupported(why);
        assigned.push_back({step, chosen->get()});
    }
    return assigned;
}

}  // namespace kbench
