// Makes problems from text, models and suites, and chooses the providers that compute them.
#include "bench/micro/cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <sstream>

#include "kbench/error.h"
#include "models/base/nearest.h"
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

std::string_view suite_text(std::string_view name) {
    const auto suite = [](const SuiteFile& file) { return file.name.substr(0, file.name.rfind('.')); };
    for (const SuiteFile& file : suite_files())
        if (suite(file) == name) return file.text;
    throw UsageError(fmt::format("--suite '{}': {}", name, nearest_name(name, suite_files(), suite)));
}

/// The values on one of `model`'s axes when none are asked for.
std::vector<AxisValue> usual_values(const ModelAxis& axis) {
    if (axis.is_count()) return {axis.usual};
    std::vector<AxisValue> words;
    for (const std::string_view word : axis.words()) words.emplace_back(std::string(word));
    if (axis.row().selects_phase) words.resize(1);
    return words;
}

/// Every combination of values of the axes that a point's phase has, in the order of a sweep's points: words change the
/// fastest.
std::vector<ModelPoint> points_of(const ModelSpec& model, const AxisLists& asked) {
    for (const auto& [name, values] : asked)
        if (model.axis(name) == nullptr)
            throw UsageError(fmt::format("--{}: {} has no {}; it has {}", name, model.name, name,
                                         fmt::join(model.axes | std::views::transform(&ModelAxis::name), ", ")));
    std::vector<ModelPoint> points(1);
    for (const Axis* axis : axes_in_order()) {
        const ModelAxis* own = model.axis(axis->name);
        if (own == nullptr) continue;
        const auto has_it = [&](const ModelPoint& point) { return axis->is_of_phase(point.phase()); };
        const auto given = asked.find(axis->name);
        if (given != asked.end() && std::ranges::none_of(points, has_it)) throw UsageError(only_of_its_phases(*axis));
        std::vector<ModelPoint> more;
        for (const ModelPoint& point : points) {
            if (!has_it(point)) {
                more.push_back(point);
                continue;
            }
            for (const AxisValue& value : given == asked.end() ? usual_values(*own) : given->second) {
                ModelPoint one = point;
                if (own->is_count())
                    one.counts[std::string(own->name)] = std::get<std::int64_t>(value);
                else
                    one.words[std::string(own->name)] = std::get<std::string>(value);
                more.push_back(std::move(one));
            }
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
        std::string direction, more;
        words >> problem.op >> problem.shape >> direction >> more;
        if (problem.op.empty()) continue;
        const auto refuse = [&](const std::string& why) {
            throw UsageError(fmt::format("{} line {}: {}", source, number, why));
        };
        const auto named = std::ranges::find(direction_names, direction.empty() ? "fwd" : direction);
        if (problem.shape.empty() || named == std::end(direction_names) || !more.empty())
            refuse(fmt::format(
                "'{}': must be an op and a shape, such as gemm m1024n3840k1280, and may name a direction: {}", line,
                fmt::join(direction_names, ", ")));
        const auto way = static_cast<Direction>(named - std::begin(direction_names));
        try {
            if (!require_op_kind(problem.op).has(way))
                throw UsageError(fmt::format("{} has no {}", problem.op, direction));
            problem.problem = parse_problem(problem.op, problem.shape, way);
        } catch (const UsageError& error) {
            refuse(error.what());
        }
        problems.push_back(std::move(problem));
    }
    if (problems.empty()) throw UsageError(fmt::format("{}: holds no problem", source));
    return problems;
}

std::vector<AskedProblem> suite_problems(std::string_view name) {
    return parse_problems(suite_text(name), fmt::format("suite {}", name));
}

std::vector<std::string> suite_notes(std::string_view name, std::span<const MicroCase> cases) {
    constexpr std::string_view mark = "#! ";
    std::vector<std::string> notes;
    std::istringstream lines{std::string(suite_text(name))};
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(mark)) continue;
        const std::string note = line.substr(mark.size());
        std::istringstream words(note.substr(0, note.find(':')));
        const std::vector<std::string> ops{std::istream_iterator<std::string>(words), {}};
        if (std::ranges::any_of(cases, [&](const MicroCase& c) { return std::ranges::count(ops, c.asked.op) > 0; }))
            notes.push_back(fmt::format("suite {}: {}", name, note));
    }
    return notes;
}

std::vector<AskedProblem> model_problems(std::string_view model, const AxisLists& asked_for, bool with_loss) {
    const ModelSpec& spec = find_model(model);
    std::vector<AskedProblem> problems;
    const auto add = [&](const Step& problem) {
        if (std::ranges::none_of(problems, [&](const AskedProblem& p) { return p.problem == problem; }))
            problems.push_back(asked(problem));
    };
    for (const ModelPoint& point : points_of(spec, asked_for)) {
        const Model built = spec.build(point);
        for (const Step& problem : problems_of(built)) add(problem);
        if (with_loss && built.loss) add(Step::of(built.loss->op));
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
                fmt::format("--provider '{}': this backend has no such provider; {}", name, nearest_name(name, known)));
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
