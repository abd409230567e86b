// Which sections a report has, in which order, and how they become a document.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <utility>

#include "analysis/machine/machine.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {

// Every section: NAME_section() stands in NAME.cpp.
#define KBENCH_SECTIONS(ROW)                         \
    ROW(device, Of::result, StandsIn::screen)        \
    ROW(environment, Of::result, StandsIn::summary)  \
    ROW(study, Of::result, StandsIn::both)           \
    ROW(points, Of::result, StandsIn::screen)        \
    ROW(sweep, Of::result, StandsIn::screen)         \
    ROW(screen, Of::point, StandsIn::screen)         \
    ROW(series, Of::result, StandsIn::screen)        \
    ROW(warnings, Of::result, StandsIn::screen)      \
    ROW(more, Of::result, StandsIn::screen)          \
    ROW(single_ops, Of::result, StandsIn::full)      \
    ROW(sweep, Of::result, StandsIn::full)           \
    ROW(points, Of::result, StandsIn::full)          \
    ROW(series, Of::result, StandsIn::full)          \
    ROW(program, Of::point, StandsIn::summary)       \
    ROW(figures, Of::point, StandsIn::summary)       \
    ROW(conditions, Of::point, StandsIn::summary)    \
    ROW(checks, Of::point, StandsIn::summary)        \
    ROW(answer, Of::point, StandsIn::both)           \
    ROW(causes, Of::point, StandsIn::summary)        \
    ROW(hardware, Of::point, StandsIn::full)         \
    ROW(program, Of::point, StandsIn::full)          \
    ROW(roofline, Of::point, StandsIn::full)         \
    ROW(heat, Of::point, StandsIn::full)             \
    ROW(timeline, Of::point, StandsIn::full)         \
    ROW(directions, Of::point, StandsIn::full)       \
    ROW(ops, Of::point, StandsIn::summary)           \
    ROW(layers, Of::point, StandsIn::summary)        \
    ROW(directions, Of::point, StandsIn::summary)    \
    ROW(hardware, Of::point, StandsIn::summary)      \
    ROW(causes, Of::point, StandsIn::folded)         \
    ROW(figures, Of::point, StandsIn::folded)        \
    ROW(checks, Of::point, StandsIn::folded)         \
    ROW(time_breakdown, Of::point, StandsIn::folded) \
    ROW(roof_times, Of::point, StandsIn::folded)     \
    ROW(serial_chains, Of::point, StandsIn::folded)  \
    ROW(cycles, Of::point, StandsIn::folded)         \
    ROW(cross_checks, Of::point, StandsIn::folded)   \
    ROW(marginal, Of::point, StandsIn::folded)       \
    ROW(elasticity, Of::point, StandsIn::folded)     \
    ROW(theft, Of::point, StandsIn::folded)          \
    ROW(attribution, Of::point, StandsIn::folded)    \
    ROW(verdicts, Of::point, StandsIn::folded)       \
    ROW(memory, Of::point, StandsIn::folded)         \
    ROW(conditions, Of::point, StandsIn::folded)     \
    ROW(steps, Of::point, StandsIn::full)            \
    ROW(points, Of::result, StandsIn::summary)       \
    ROW(sweep, Of::result, StandsIn::summary)        \
    ROW(series, Of::result, StandsIn::summary)       \
    ROW(warnings, Of::result, StandsIn::both)        \
    ROW(ceilings, Of::result, StandsIn::full)        \
    ROW(environment, Of::result, StandsIn::full)     \
    ROW(method, Of::result, StandsIn::full)          \
    ROW(closing, Of::result, StandsIn::both)

#define KBENCH_DECLARE(name, of, in) Section name##_section(const SectionContext& context);
KBENCH_SECTIONS(KBENCH_DECLARE)

std::span<const SectionKind> section_kinds() {
#define KBENCH_KIND(name, of, in) {#name, of, in, name##_section},
    static constexpr SectionKind kinds[] = {KBENCH_SECTIONS(KBENCH_KIND)};
    return kinds;
}

Section section_called(std::string_view name, const SectionContext& context) {
    const auto found = std::ranges::find(section_kinds(), name, &SectionKind::name);
    if (found == section_kinds().end()) throw std::out_of_range(fmt::format("no section is called {}", name));
    return found->make(context);
}

namespace {

bool stands_in(const SectionKind& kind, Depth depth) {
    switch (depth) {
        case Depth::screen: return kind.in == StandsIn::screen;
        case Depth::summary: return kind.in == StandsIn::both || kind.in == StandsIn::summary;
        case Depth::full: break;
    }
    return kind.in == StandsIn::both || kind.in == StandsIn::full || kind.in == StandsIn::folded;
}

/// What was not measured has its reason, and in a summary what was checked before.
Section missing_point(const SectionContext& context) {
    const Point& point = context.point();
    if (context.is_full())
        return {point_name(point), {Paragraph{fmt::format("{}: {}.", name(point.status), point.reason)}}};
    const std::string reason = fmt::format("{}: {}: {}", placed_name(point), name(point.status), point.reason);
    if (point.verification.steps.empty()) return {"", {Paragraph{reason}}};
    return {reason, section_called("checks", context).blocks};
}

Section point_section(const SectionContext& context, std::span<const SectionKind> kinds) {
    const Point& point = context.point();
    if (point.status != PointStatus::done) return missing_point(context);
    Section section{context.is_full() ? point_name(point) : point_heading(point)};
    for (const SectionKind& kind : kinds) {
        if (kind.of != Of::point || !stands_in(kind, context.depth)) continue;
        Section made = kind.make(context);
        if (!made.title.empty()) {
            made.is_folded = made.is_folded || kind.in == StandsIn::folded;
            section.add(std::move(made));
            continue;
        }
        for (Block& block : made.blocks) section.add(std::move(block));
        for (Section& below : made.sections) section.add(std::move(below));
    }
    return section;
}

/// A single point in full is titled with a sentence, because the document's title says the rest.
void add_points(Document& document, const ExplainedResult& explained, std::span<const SectionKind> kinds, Depth depth) {
    std::vector<Section> points;
    const bool is_study = explained.result().study.has_value();
    // What is told of all of them comes first, and text has no more.
    const bool is_only_on_page = is_study || is_of_single_ops(explained.result());
    if (is_study && depth != Depth::full) return;
    // One screen is for one point; of several each has a row. The first rank of a program stands for the others.
    const bool has_rows = depth == Depth::screen && is_told_as_sweep({explained, depth});
    const bool is_ranks = is_of_ranks(explained.result());
    for (std::size_t i = 0; i < explained.points().size(); ++i)
        if (!has_rows || explained.points()[i].status != PointStatus::done || (is_ranks && i == 0))
            points.push_back(point_section({explained, depth, i}, kinds));
    if (depth != Depth::full) {
        std::ranges::move(points, std::back_inserter(document.sections));
    } else if (points.size() == 1 && !is_study) {
        points.front().blocks.insert(points.front().blocks.begin(), Paragraph{std::exchange(points.front().title, {})});
        document.sections.push_back(std::move(points.front()));
    } else if (!points.empty()) {
        document.sections.push_back(
            {"", {}, std::move(points), is_ranks ? "Rank" : "Point of the sweep", false, is_only_on_page});
    }
}

Document document_of(const ExplainedResult& explained, std::span<const SectionKind> kinds, Depth depth) {
    Document document{report_title(explained.result()), {}};
    bool has_points = false;
    for (const SectionKind& kind : kinds) {
        if (!stands_in(kind, depth)) continue;
        if (kind.of == Of::point) {
            if (!std::exchange(has_points, true)) add_points(document, explained, kinds, depth);
            continue;
        }
        Section made = kind.make({explained, depth});
        if (made.empty()) continue;
        if (made.title.empty() && made.blocks.empty())
            std::ranges::move(made.sections, std::back_inserter(document.sections));
        else
            document.sections.push_back(std::move(made));
    }
    return document;
}

}  // namespace

Document report_of(const ExplainedResult& explained, std::span<const SectionKind> kinds) {
    return document_of(explained, kinds, Depth::full);
}

Document summary_of(const ExplainedResult& explained, std::span<const SectionKind> kinds) {
    return document_of(explained, kinds, Depth::summary);
}

Document screen_of(const ExplainedResult& explained, std::span<const SectionKind> kinds) {
    return document_of(explained, kinds, Depth::screen);
}

std::string report_title(const Result& result) {
    std::vector<std::string> models;
    const bool is_ops = is_of_single_ops(result);
    for (const Point& point : result.points) add_once(models, is_ops ? benchmark_names(point).front() : point.model());
    constexpr std::size_t most_names = 3;
    std::string names = joined(models | std::views::take(most_names), ", ");
    if (models.size() > most_names) names += fmt::format(" and {} more", models.size() - most_names);
    if (is_ops) names = fmt::format("{} benchmarks of {}", result.points.size(), names);
    const Environment& environment = result.environment;
    const auto on_gpu = [](const Point& point) { return point.backend() == "cuda"; };
    const bool is_gpu = environment.gpu && std::ranges::any_of(result.points, on_gpu);
    return fmt::format("{} on {}", names.empty() ? "kbench" : names,
                       is_gpu ? device_name(*environment.gpu) : environment.host.cpu);
}

std::string origin_text(const Quantity& quantity) {
    if (!quantity.reason.empty()) return fmt::format("{}: {}", name(quantity.origin), quantity.reason);
    return quantity.value ? std::string(name(quantity.origin)) : "unavailable: no reason recorded";
}

std::string fixed(double value, int decimals) {
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    // What rounds to zero has no sign.
    return text.starts_with('-') && text.find_first_not_of("-0.") == text.npos ? text.substr(1) : text;
}

std::string time_text(double us) { return format_ms(us * 1e-3); }

std::string step_text(const StepResult& step) {
    const std::string kernels = joined(step.kernels, " + ", &KernelResult::short_name);
    return fmt::format("{} {}, {}\n{}", step.index, step.layer, step.op,
                       shorten(kernels.empty() ? step.implementation : kernels, 60));
}

}  // namespace kbench
