// From what was planted and what kbench says to a row of the matrix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tests/truths/truth.h"

namespace kbench {
namespace {

bool is_right(const RightVerdict& right, const Verdict& said) {
    return right.bound == said.bound && (right.rule.empty() || right.rule == said.rule) &&
           (right.levels.empty() || std::ranges::find(right.levels, said.level) != right.levels.end());
}

JudgedFigure judge(const PlantedFigure& figure, const KnownResult& known) {
    JudgedFigure judged{.what = figure.what, .planted = figure.planted, .measured = figure.measured(known)};
    if (!judged.measured) return judged;
    judged.off = *judged.measured - figure.planted;
    if (figure.tolerance == Tolerance::of_planted) judged.off /= figure.planted;
    judged.holds = std::abs(judged.off) <= figure.within;  // false for NaN
    return judged;
}

/// The worse of two results; the enumerators stand in that order.
void worsen(Judgement& judgement, TruthResult result, const std::string& why) {
    judgement.result = std::max(judgement.result, result);
    judgement.why += (judgement.why.empty() ? "" : "; ") + why;
}

void judge_verdict(Judgement& judgement, const Planted& planted, const Explanation& explained) {
    const Verdict& said = explained.verdicts.steps.at(planted.judged);
    if (std::ranges::none_of(planted.right, [&](const RightVerdict& right) { return is_right(right, said); }))
        worsen(judgement, said.bound == Bound::not_identifiable ? TruthResult::cannot_tell : TruthResult::wrong,
               "the verdict");
    else if (explained.verdicts.model.bound != said.bound)
        worsen(
            judgement,
            explained.verdicts.model.bound == Bound::not_identifiable ? TruthResult::cannot_tell : TruthResult::wrong,
            fmt::format("the whole is said to be {}", name(explained.verdicts.model.bound)));
}

/// What a CPU's roofs, measured while others used its cores, are said to be first: there the figures do contradict each
/// other, and which of them is wrong is named.
bool blames_the_roofs(const std::string& finding) {
    return finding.find("suspect, in this order, the roofs") != std::string::npos;
}

/// Figures that cannot be: asked for, or a false alarm.
void judge_impossible(Judgement& judgement, const Planted& planted, const Explanation& explained) {
    const auto named = [&](const std::string& figure) { return figure.find(planted.impossible) != std::string::npos; };
    if (planted.impossible.empty()) {
        if (!explained.impossible.empty())
            worsen(judgement,
                   std::ranges::all_of(explained.impossible, blames_the_roofs) ? TruthResult::cannot_tell
                                                                               : TruthResult::wrong,
                   fmt::format("called impossible: {}", fmt::join(explained.impossible, "; ")));
    } else if (std::ranges::none_of(explained.impossible, named)) {
        worsen(judgement, TruthResult::wrong, "not called impossible");
    }
}

}  // namespace

Judgement judge(std::string_view truth, const Planted& planted, const KnownResult& known) {
    Judgement judgement{.truth = std::string(truth), .planted = planted.what, .result = TruthResult::ok};
    if (!known.unavailable.empty()) {
        worsen(judgement, TruthResult::cannot_tell, known.unavailable);
        return judgement;
    }
    const Verdict& said = known.explained.verdicts.steps.at(planted.judged);
    judgement.bound = name(said.bound);
    judgement.level = said.level;
    judgement.rule = said.rule;
    judge_impossible(judgement, planted, known.explained);
    if (!planted.right.empty()) judge_verdict(judgement, planted, known.explained);
    for (const PlantedFigure& figure : planted.figures) {
        const JudgedFigure& judged = judgement.figures.emplace_back(judge(figure, known));
        if (!judged.measured)
            worsen(judgement, TruthResult::cannot_tell, judged.what + " was not counted");
        else if (!judged.holds)
            worsen(judgement, TruthResult::wrong, judged.what);
    }
    if (judgement.result != TruthResult::ok) judgement.account = account(known.explained, planted.judged);
    return judgement;
}

std::string moved_pace(double before_ms, double after_ms) {
    if (std::abs(after_ms - before_ms) <= steady_pace * before_ms) return "";
    return fmt::format("the same work took {:.3g} ms before and {:.3g} ms afterwards: others use this host", before_ms,
                       after_ms);
}

}  // namespace kbench
