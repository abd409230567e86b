// A known-answer test (a truth): work whose bound is known by construction, the verdicts that are right for it, and
// figures that are known beforehand. They are compared with what kbench says after it measured the work like a model.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/backend.h"
#include "tests/profile/known_steps.h"
#include "tests/truths/draw.h"

namespace kbench {

class Planter;

/// A verdict that is right. Several may be: two units can be equally busy by construction.
struct RightVerdict {
    Bound bound;
    std::vector<std::string_view> levels{};  ///< any of them; any level at all where none stands here
    std::string_view rule{};                 ///< any rule where none stands here
};

/// What a tolerance is a share of: the planted value, or the whole for shares of the time, which are parts of 1.
enum class Tolerance { of_planted, of_whole };
inline constexpr double figure_tolerance = 0.05;
/// For a line of the breakdown by cause that was planted.
inline constexpr double cause_tolerance = 0.10;

/// A figure that is known before it is measured.
struct PlantedFigure {
    std::string what;
    double planted = 0;
    /// As kbench has it; nothing where it has none.
    std::function<std::optional<double>(const KnownResult&)> measured;
    Tolerance tolerance = Tolerance::of_planted;
    double within = figure_tolerance;
};

/// What a truth puts to the test on one machine with one seed. Its steps own what they work on.
struct Planted {
    std::string what;  ///< in a reader's words
    std::vector<KnownStep> steps;
    std::size_t judged = 0;           ///< the step whose verdict counts; the model's must have the same bound
    std::vector<RightVerdict> right;  ///< none: the verdict is not judged, only figures are
    std::vector<PlantedFigure> figures;
    /// Part of the sentence that calls a figure impossible. Where it is empty, no figure may be called so.
    std::string impossible{};
    KnownBudget budget;
};

struct Truth {
    std::string_view name;
    BackendKind backend;
    std::vector<DrawRange> draws;
    /// Throws Unsupported where this machine cannot run it.
    Planted (*plant)(const Planter& at, const Drawn& drawn);
};
/// All truths, a GPU's first.
std::span<const Truth> truths();

enum class TruthResult { ok, cannot_tell, wrong, not_here };
inline constexpr std::string_view truth_result_names[] = {"ok", "cannot tell", "WRONG", "not here"};
constexpr std::string_view name(TruthResult result) { return truth_result_names[static_cast<int>(result)]; }

struct JudgedFigure {
    std::string what;
    double planted = 0;
    std::optional<double> measured{};
    double off = 0;  ///< signed, relative to the planted value or in parts of the whole, as its tolerance is
    bool holds = false;
};

/// One row of the matrix, and a line for every figure after the first.
struct Judgement {
    std::string truth{}, planted{};
    std::string bound{}, level{}, rule{};  ///< as kbench said it
    std::vector<JudgedFigure> figures{};
    TruthResult result = TruthResult::not_here;
    std::string why{};      ///< it is not ok
    std::string account{};  ///< all that kbench has of it; empty where it is ok
    int attempts = 1;       ///< those before the last were disturbed by others on the host
};

/// ok: a right verdict, and every figure holds. cannot tell: no verdict where there is a right one, or a figure that
/// kbench does not have. WRONG: another verdict, a figure that is off, or figures called impossible that are not.
Judgement judge(std::string_view truth, const Planted& planted, const KnownResult& known);

/// A CPU that others use as well, just before a truth was measured on it or just after. Empty for a GPU.
struct HostLook {
    double work_ms = 0;  ///< the planted work took
    CeilingRun roofs{};
};
/// The pace of what is planted may differ so much while it is measured, and a roof that it is judged by: no more than
/// its figures may be off.
inline constexpr double steady_pace = 0.03, steady_roof = figure_tolerance;
/// Why nothing certain was planted: the same work took another time before, while or after it was measured, or beside
/// thieves that only compute; or a roof was another. Empty where none was. A host that others use does this, and
/// whatever kbench says of it would be judged by a figure of another time.
std::string disturbance(const HostLook& before, const KnownResult& known, const HostLook& after);

}  // namespace kbench
