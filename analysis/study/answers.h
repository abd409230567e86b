// What a study says: findings and their figures, rows of its tables, changes, and the points left aside.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/what_if.h"
#include "analysis/explain/directions.h"
#include "analysis/result/interval.h"
#include "analysis/study/tasks.h"
#include "kbench/result.h"

namespace kbench {

/// A figure of a sentence. docs/study.md has each quantity's formula.
struct StudyFigure {
    std::string quantity;             ///< what it is, such as "latency_ms" or "throughput_ratio"
    std::vector<std::size_t> points;  ///< the result's, as the quantity takes them
    std::string part;                 ///< a layer of all blocks, or an op kind; empty: the whole point
    Interval value;
    bool has_interval = true;  ///< both ends are a 95 % interval's; else the range of few samples, or nothing at all
    std::string text;          ///< as it stands in the sentence
};

struct StudyFinding {
    std::string text;
    std::vector<StudyFigure> figures = {};

    StudyFinding& operator+=(const StudyFinding& more) {
        text += more.text;
        figures.insert(figures.end(), more.figures.begin(), more.figures.end());
        return *this;
    }
};

/// A point that no sentence rests on.
struct StudyExclusion {
    std::string point;               ///< its name, as in the tables
    std::vector<std::string> tasks;  ///< that would have looked at it; empty: the plan does not have it
    std::string why;
    bool is_suspect = false;  ///< measured, but not to be believed; else it was not measured
};

/// A layer of all blocks in the point of the first question.
struct StudyLayer {
    std::string name;
    Interval time_us, share;                              ///< share of the steps' time
    std::string kernel;                                   ///< the longest of its kernels, or what implements it
    std::optional<double> achieved_pct, theoretical_pct;  ///< occupancy, by time; nothing on a CPU
    std::string limiter;                                  ///< what limits the longest kernel's occupancy
    std::string bound;                                    ///< by the rules of verdicts
    bool is_identified = false;                           ///< they tell what binds it
    std::optional<Interval> recoverable_us;               ///< time above the longest roof time of each step
};

/// A point of the batch series, or of the precisions.
struct StudyRow {
    std::size_t point = 0;
    Interval latency_ms;
    bool has_interval = true;
    std::optional<double> sequences_per_s, roof_share, occupancy_pct, energy_j;
    std::string bound, roof;  ///< what binds, and the roof with the longest roof time
    /// How much faster a precision is than the slowest common ground, and by how much its roof is higher.
    std::optional<Interval> speed_up;
    std::optional<double> roof_ratio;
    std::string executed;  ///< what proves that it ran as asked, or why nothing does
};

/// The answer to one question.
struct StudyAnswer {
    const StudyTaskKind* kind = nullptr;
    std::vector<StudyFinding> findings;
    std::vector<std::string> notes;  ///< what could not be said, and why
};

/// Something to change, and what is known of its worth.
struct StudyChange {
    std::string what;
    Interval saved;  ///< a share of the time of a sequence; the value is what is expected, the ends what is known
    StudyFinding evidence;
    std::string refuted_by;  ///< what would show that it is not so
};

struct Study {
    std::string_view sequence = "sequence";  ///< what a batch consists of, see sequence_word
    std::optional<std::size_t> base;   ///< the point that all questions share; nothing where it is not to be believed
    std::vector<StudyAnswer> answers;  ///< as study_tasks
    std::vector<StudyLayer> layers;    ///< longest first
    std::vector<StudyRow> batches;     ///< smallest first
    std::vector<StudyRow> precisions;  ///< as all_precisions
    Directions directions;
    std::optional<std::size_t> training;  ///< the point of `directions`
    std::vector<StudyExclusion> excluded;
    std::vector<StudyChange> changes;  ///< at most three, the largest first
    std::string
        changes_unavailable;        ///< why none is proposed though some may be worth it; empty where all were weighed
    std::vector<WhatIf> elsewhere;  ///< on machines of the same kind, fastest first
};

}  // namespace kbench
