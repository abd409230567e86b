// What the points of a sweep say together.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "analysis/explain/in_short.h"
#include "analysis/report/sections/sweep_curves.h"
#include "analysis/result/frames.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// So few points of one kind are named.
constexpr std::size_t named_points = 2;

std::string capital(std::string text) {
    if (!text.empty()) text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
}

/// Points that have the same word.
struct Kind {
    std::string word;
    std::vector<const Point*> points = {};
};

/// " (fp16, batch 1; fp16, batch 2)", or of more of them what they have in common: " (each fp16)".
std::string who(const Kind& kind, const std::vector<const Axis*>& axes) {
    if (kind.points.size() <= named_points)
        return fmt::format(" ({})",
                           joined(kind.points, "; ", [&](const Point* point) { return place_name(*point, axes); }));
    std::vector<std::string> common;
    for (const Axis* axis : axes) {
        const AxisValue* first = kind.points.front()->axes.find(axis->name);
        const auto has_it = [&](const Point* point) {
            const AxisValue* value = point->axes.find(axis->name);
            return first != nullptr && value != nullptr && *value == *first;
        };
        if (std::ranges::all_of(kind.points, has_it)) common.push_back(said(*axis, *first));
    }
    return common.empty() ? "" : fmt::format(" (each {})", joined(common, ", "));
}

/// "NO at 16 of 18 points, YES at 2 (fp16, batch 1; fp16, batch 2)", most first.
std::string counted(std::vector<Kind> kinds, const std::vector<const Axis*>& axes, std::size_t all) {
    std::ranges::stable_sort(kinds, std::greater{}, [](const Kind& kind) { return kind.points.size(); });
    if (kinds.size() == 1) return fmt::format("{} at all {} points", kinds.front().word, all);
    std::string text;
    for (const Kind& kind : kinds) {
        text += text.empty() ? fmt::format("{} at {} of {} points", kind.word, kind.points.size(), all)
                             : fmt::format(", {} at {}", kind.word, kind.points.size());
        text += who(kind, axes);
    }
    return text;
}

/// What a second does: tokens, or where not all points have them, sequences or utterances.
struct Rate {
    std::string unit;
    PointFigure of;
};

std::optional<double> tokens_per_s(const SectionContext& context) { return context.point().end_to_end->tokens_per_s; }

std::optional<double> sequences_per_s(const SectionContext& context) {
    const bool is_known = context.point().axes.find("batch") != nullptr && median_ms(context) > 0;
    return is_known ? std::optional(1e3 * static_cast<double>(context.point().batch()) / median_ms(context))
                    : std::nullopt;
}

Rate rate_of(const std::vector<SectionContext>& points) {
    const bool has_tokens =
        std::ranges::all_of(points, [](const SectionContext& context) { return tokens_per_s(context).has_value(); });
    if (has_tokens) return {"tokens/s", tokens_per_s};
    return {fmt::format("{}s/s", sequence_word(points.front().point())), sequences_per_s};
}

std::string range_text(double low, double high) {
    const std::string first = significant(low), last = significant(high);
    return first == last ? first : first + " to " + last;
}

/// "fp16 is 4.3 to 10.8 times as fast as fp32": each word of an axis against one of them. Directions and phases are
/// other work, so "direction train takes 3 times as long as direction fwd".
std::string of_words(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes,
                     const Axis& along) {
    const bool is_other_work = along.name == "direction" || along.selects_phase;
    std::vector<AxisValue> words;
    for (const SectionContext& context : points)
        if (const AxisValue* word = context.point().axes.find(along.name)) add_once(words, *word);
    const std::vector<SweepCurve> curves = curves_along(points, axes, along, [](const SectionContext& context) {
        return median_ms(context) > 0 ? std::optional(median_ms(context)) : std::nullopt;
    });
    // fp32, as checkpoints have it; else the word with the longest run, of directions with the shortest.
    AxisValue reference = words.front();
    double furthest = 0;
    for (const SweepCurve& curve : curves)
        for (const auto& [word, place] : curve.places)
            if (const double ms = place.median(); is_other_work ? furthest == 0 || ms < furthest : ms > furthest)
                furthest = ms, reference = word;
    if (const AxisValue fp32 = std::string(name(Precision::fp32)); along.name == "precision" && contains(words, fp32))
        reference = fp32;
    std::vector<std::string> parts;
    for (const AxisValue& word : words) {
        std::vector<double> ratios;
        for (const SweepCurve& curve : curves) {
            if (!curve.places.contains(word) || !curve.places.contains(reference) || word == reference) continue;
            const double times = curve.places.at(reference).median() / curve.places.at(word).median();
            ratios.push_back(is_other_work ? 1 / times : times);
        }
        if (ratios.empty()) continue;
        const auto [low, high] = std::ranges::minmax(ratios);
        const char* verb = !parts.empty() ? "" : is_other_work ? "takes " : "is ";
        parts.push_back(fmt::format("{} {}{}", said(along, word), verb, range_text(low, high)));
    }
    if (parts.empty()) return "";
    const std::string sentence = fmt::format("{} times as {} as {}.", joined(parts, ", "),
                                             is_other_work ? "long" : "fast", said(along, reference));
    return along.is_bare() ? sentence : capital(sentence);  // names of precisions stay as they are
}

/// "Batch 4 has 1.1 to 2.7 times the tokens/s of batch 1": the ends of each curve.
std::string of_counts(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes,
                      const Axis& along, const Rate& rate) {
    std::vector<double> ratios;
    std::vector<AxisValue> firsts, lasts;
    for (const SweepCurve& curve : curves_along(points, axes, along, rate.of)) {
        if (curve.places.size() < 2) continue;
        const auto& [first, slow] = *curve.places.begin();
        const auto& [last, fast] = *curve.places.rbegin();
        if (!(slow.median() > 0)) continue;
        ratios.push_back(fast.median() / slow.median());
        add_once(firsts, first);
        add_once(lasts, last);
    }
    if (ratios.empty()) return "";
    const auto [low, high] = std::ranges::minmax(ratios);
    const bool is_one_pair = firsts.size() == 1 && lasts.size() == 1;
    return capital(fmt::format(
        "{} has {} times the {} of {}.",
        is_one_pair ? said(along, lasts.front()) : fmt::format("the largest {}", along.in_full()),
        range_text(low, high), rate.unit, is_one_pair ? said(along, firsts.front()) : std::string("the smallest")));
}

/// One of each point and its repeats: the one with the median time, so that the luckiest is not told of.
std::vector<SectionContext> without_repeats(const std::vector<SectionContext>& points,
                                            const std::vector<const Axis*>& axes) {
    struct Repeated {
        std::string place;
        std::vector<const SectionContext*> points = {};
    };
    std::vector<Repeated> places;
    for (const SectionContext& context : points)
        entry(places, &Repeated::place, place_name(context.point(), axes)).points.push_back(&context);
    std::vector<SectionContext> middle;
    for (Repeated& repeated : places) {
        std::ranges::stable_sort(repeated.points, {}, [](const SectionContext* one) { return median_ms(*one); });
        middle.push_back(*repeated.points[(repeated.points.size() - 1) / 2]);
    }
    return middle;
}

/// Points of one phase: phases are other work, and are not compared.
struct OfPhase {
    std::string phase;
    std::vector<SectionContext> points = {};
};

std::vector<OfPhase> by_phase(const std::vector<SectionContext>& points) {
    std::vector<OfPhase> phases;
    for (const SectionContext& context : points)
        entry(phases, &OfPhase::phase, context.point().axes.phase()).points.push_back(context);
    return phases;
}

/// The best points of a phase. Where it is the only one: "Most tokens/s: 430 at batch 4. Shortest run: 2.31 ms at batch
/// 1." Else: "Decode step: shortest 2.31 ms a token at batch 1, most tokens/s 430 at batch 4."
std::string best_of(const OfPhase& phase, bool is_only_one, const std::vector<const Axis*>& axes, const Rate& rate) {
    const auto rate_at = [&](const SectionContext& context) { return rate.of(context).value_or(0); };
    const SectionContext &fastest = *std::ranges::max_element(phase.points, {}, rate_at),
                         &shortest = *std::ranges::min_element(phase.points, {}, median_ms);
    const auto at = [&](const SectionContext& context) {
        if (std::ranges::all_of(axes, &Axis::selects_phase)) return std::string();
        return " at " + place_name(context.point(), axes, &phase_axis());
    };
    const TimedWords& words = timed_words(shortest.point());
    const std::string time = format_ms(median_ms(shortest)) + std::string(words.time_is) + at(shortest),
                      most = rate_at(fastest) > 0 ? significant(rate_at(fastest)) : "";
    if (is_only_one)
        return fmt::format("{}Shortest run: {}.",
                           most.empty() ? "" : fmt::format("Most {}: {}{}. ", rate.unit, most, at(fastest)), time);
    const std::string name = capital(std::string(words.name));
    if (phase.points.size() == 1)
        return fmt::format("{}: {}{}.", name, time, most.empty() ? "" : fmt::format(", {} {}", most, rate.unit));
    return fmt::format("{}: shortest {}{}.", name, time,
                       most.empty() ? "" : fmt::format(", most {} {}{}", rate.unit, most, at(fastest)));
}

}  // namespace

std::vector<std::string> sweep_answer(const std::vector<SectionContext>& all, const std::vector<const Axis*>& axes) {
    std::vector<SectionContext> right;
    for (const SectionContext& context : all)
        if (!has_wrong_step(context.point().verification) && context.explanation().impossible.empty())
            right.push_back(context);
    const std::vector<SectionContext> points = without_repeats(right, axes);
    if (points.size() < 2) return {};
    std::vector<Kind> answers, bounds;
    for (const SectionContext& context : points) {
        const Explanation& explanation = context.explanation();
        const Point* point = &context.point();
        entry(answers, &Kind::word, shouted(bandwidth_bound(explanation).answer)).points.push_back(point);
        entry(bounds, &Kind::word, std::string(name(explanation.verdicts.model.bound))).points.push_back(point);
    }
    std::vector<std::string> sentences{
        fmt::format("Bandwidth-bound? {}.", counted(std::move(answers), axes, points.size())),
        fmt::format("What binds it: {}.", counted(std::move(bounds), axes, points.size()))};
    const Rate rate = rate_of(points);
    const std::vector<OfPhase> phases = by_phase(points);
    for (const OfPhase& phase : phases) sentences.push_back(best_of(phase, phases.size() == 1, axes, rate));
    for (const Axis* axis : axes) {
        std::string sentence =
            axis->kind == AxisKind::count ? of_counts(right, axes, *axis, rate) : of_words(right, axes, *axis);
        if (!sentence.empty()) sentences.push_back(std::move(sentence));
    }
    if (const std::size_t left_out = all.size() - right.size(); left_out > 0)
        sentences.push_back(fmt::format("{} of the points {}.", left_out,
                                        left_out == 1 ? "is left out of this: its results or figures are wrong"
                                                      : "are left out of this: their results or figures are wrong"));
    return sentences;
}

}  // namespace kbench
