// What the points of a sweep say together.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "analysis/explain/in_short.h"
#include "analysis/report/sections/sweep_curves.h"
#include "analysis/result/frames.h"
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

/// " (fp16, batch 1; fp16, batch 2)", or of more of them what they alone have in common: " (all fp16)".
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
    return common.empty() ? "" : fmt::format(" (all {})", joined(common, ", "));
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

std::string shouted(std::string_view word) {
    std::string text;
    for (const char c : word) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

/// What a second does: tokens, or where not all points have them, sequences.
struct Rate {
    std::string unit;
    PointFigure of;
};

Rate rate_of(const std::vector<SectionContext>& points) {
    const auto tokens = [](const SectionContext& context) { return context.point().end_to_end->tokens_per_s; };
    if (std::ranges::all_of(points, [&](const SectionContext& context) { return tokens(context).has_value(); }))
        return {"tokens/s", tokens};
    return {fmt::format("{}s/s", sequence_word(points.front().point())),
            [](const SectionContext& context) { return context.point().end_to_end->sequences_per_s; }};
}

std::string range_text(double low, double high) {
    const std::string first = significant(low), last = significant(high);
    return first == last ? first : first + " to " + last;
}

/// "fp16 is 4.3 to 10.8 times as fast as fp32": each word of an axis against one of them, by equal work.
std::string of_words(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes,
                     const Axis& along) {
    std::vector<AxisValue> words;
    for (const SectionContext& context : points)
        if (const AxisValue* word = context.point().axes.find(along.name)) add_once(words, *word);
    const std::vector<SweepCurve> curves = curves_along(
        points, axes, along, [](const SectionContext& context) { return std::optional(median_ms(context)); });
    // fp32, as checkpoints have it; else the word with the longest run.
    AxisValue reference = words.front();
    double longest = 0;
    for (const SweepCurve& curve : curves)
        for (const auto& [word, place] : curve.places)
            if (place.median() > longest) longest = place.median(), reference = word;
    if (const AxisValue fp32 = std::string(name(Precision::fp32)); along.name == "precision" && contains(words, fp32))
        reference = fp32;
    std::vector<std::string> parts;
    for (const AxisValue& word : words) {
        std::vector<double> ratios;
        for (const SweepCurve& curve : curves)
            if (curve.places.contains(word) && curve.places.contains(reference) && word != reference)
                ratios.push_back(curve.places.at(reference).median() / curve.places.at(word).median());
        if (ratios.empty()) continue;
        const auto [low, high] = std::ranges::minmax(ratios);
        parts.push_back(fmt::format("{} {}{}", said(along, word), parts.empty() ? "is " : "", range_text(low, high)));
    }
    if (parts.empty()) return "";
    return fmt::format("{} times as fast as {}.", joined(parts, ", "), said(along, reference));
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

}  // namespace

std::vector<std::string> sweep_answer(const std::vector<SectionContext>& points, const std::vector<const Axis*>& axes) {
    std::vector<SectionContext> right;
    for (const SectionContext& context : points)
        if (!has_wrong_step(context.point().verification)) right.push_back(context);
    if (right.size() < 2) return {};
    std::vector<Kind> answers, bounds;
    for (const SectionContext& context : right) {
        const Explanation& explanation = context.explanation();
        const Point* point = &context.point();
        entry(answers, &Kind::word, shouted(name(bandwidth_bound(explanation).answer))).points.push_back(point);
        entry(bounds, &Kind::word, std::string(name(explanation.verdicts.model.bound))).points.push_back(point);
    }
    std::vector<std::string> sentences{
        fmt::format("Bandwidth-bound? {}.", counted(std::move(answers), axes, right.size())),
        fmt::format("What binds it: {}.", counted(std::move(bounds), axes, right.size()))};
    const Rate rate = rate_of(right);
    const auto rate_at = [&](const SectionContext& context) { return rate.of(context).value_or(0); };
    const SectionContext &fastest = *std::ranges::max_element(right, {}, rate_at),
                         &shortest = *std::ranges::min_element(right, {}, median_ms);
    if (rate_at(fastest) > 0)
        sentences.push_back(fmt::format("Most {}: {} at {}. Shortest run: {} at {}.", rate.unit,
                                        significant(rate_at(fastest)), place_name(fastest.point(), axes),
                                        format_ms(median_ms(shortest)), place_name(shortest.point(), axes)));
    for (const Axis* axis : axes) {
        std::string sentence =
            axis->kind == AxisKind::count ? of_counts(right, axes, *axis, rate) : of_words(right, axes, *axis);
        if (!sentence.empty()) sentences.push_back(std::move(sentence));
    }
    if (right.size() < points.size())
        sentences.push_back(fmt::format("{} of the points {}.", points.size() - right.size(),
                                        points.size() - right.size() == 1
                                            ? "is left out of this: its results are wrong"
                                            : "are left out of this: their results are wrong"));
    return sentences;
}

}  // namespace kbench
