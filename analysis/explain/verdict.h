// Verdicts: what binds a step, a layer or the model, in one word, with the evidence, the margin and what would overturn
// it. The rules and their thresholds are one table in verdict_rules.cpp; docs/method.md explains them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

enum class Bound { bandwidth, compute, latency, launch, occupancy, not_identifiable };
inline constexpr std::string_view bound_names[] = {"bandwidth-bound", "compute-bound",     "latency-bound",
                                                   "launch-bound",    "occupancy-limited", "unknown"};
constexpr std::string_view name(Bound bound) { return bound_names[static_cast<int>(bound)]; }

/// What the data say of one hypothesis.
enum class Finding { confirmed, rejected, not_identifiable };
inline constexpr std::string_view finding_names[] = {"confirmed", "rejected", "cannot tell"};
constexpr std::string_view name(Finding finding) { return finding_names[static_cast<int>(finding)]; }

/// A bound put to the test: confirmed when it decides the verdict; rejected when the figures of all its rules are under
/// half of what they ask for, in what was not split up to all of the rest, and in bytes that were not counted with four
/// times the cost model's; otherwise, and where a figure is not known at all, not identifiable.
struct Hypothesis {
    Bound bound;
    Finding finding = Finding::not_identifiable;
    std::string why;  ///< the figure and its threshold
};

/// One line of the rule table.
struct VerdictRule {
    std::string_view id;
    Bound bound;
    std::string_view what;  ///< the condition in words, with names of thresholds in braces
    double threshold = 0;   ///< what the rule's figure must reach, a share

    std::string text() const;  ///< the condition with its thresholds
};
/// All of them: those of steps, then those of layers and the model, each in the order in which they are tried.
std::span<const VerdictRule> verdict_rules();

/// Verdict::level where nothing binds that was counted, and those of causes that are no roof.
inline constexpr std::string_view units_not_counted = "units not counted",
                                  time_steps_level = "serial chain of time steps",
                                  fixed_time_level = "fixed time of kernels", main_loop_level = "main loop",
                                  last_wave_level = "last wave";

struct Verdict {
    std::string subject;  ///< "model", a layer of all blocks, or a step "12 h.1.attn"
    Bound bound = Bound::not_identifiable;
    std::string rule;   ///< id of the deciding line
    std::string level;  ///< for bandwidth-bound: DRAM, L2, L1 or shared memory; for compute-bound the unit's ceiling or
                        ///< UnitActivity::unit, which is also what may bind a step of rule half-busy; for
                        ///< latency-bound time_steps_level where it is known that they are why
    std::vector<std::string> evidence;   ///< one figure each, with its origin
    double undecided = 0;                ///< the part of a layer's or the model's time that is not identifiable
    bool lacks_units = false;            ///< some of that is not, because units were not counted
    bool may_be_one = false;             ///< and with that part one bound may have most of the time
    double margin = 0;                   ///< how far the deciding figure is beyond its threshold, relative; >= 0
    std::string overturned_by;           ///< what would have to be different
    std::vector<Hypothesis> hypotheses;  ///< one a bound, in their order
};

/// By step, in order; by layer; the model.
struct Verdicts {
    std::vector<Verdict> steps, layers;
    Verdict model;
    std::optional<Verdict> kernels;  ///< what the model would be, where a program waits for its host
};

/// The share of the time from which on a roof binds. Nsight Compute takes less than 60 % of both its throughputs for a
/// sign of latency.
inline constexpr double bound_share = 0.60;
/// A hypothesis is rejected where all its figures are under this part of their thresholds.
inline constexpr double rejecting_part = 0.5;

}  // namespace kbench
