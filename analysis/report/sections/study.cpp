// A study as a document: an answer a question with its table, what to change, other machines, the points left aside.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "analysis/compare/what_if.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr std::size_t summary_layers = 8, charted_layers = 10;

std::string interval_text(const Interval& value, bool has_interval, int decimals) {
    if (value.low == value.high) return "";
    return fmt::format("{}{:.{}f}, {:.{}f}{}", has_interval ? "[" : "(", value.low, decimals, value.high, decimals,
                       has_interval ? "]" : ")");
}

std::string optional_text(const std::optional<double>& value, int decimals) {
    return value ? fixed(*value, decimals) : "";
}

Rows layer_rows(const Study& study, Depth depth) {
    Rows rows{{names("layer"), figures("ms"), figures("share %"), words("kernel", 1, true), figures("occ %"),
               figures("of %", 2), words("limited by", 2), words("bottleneck"), figures("above roofs ms")}};
    for (const StudyLayer& layer : study.layers) {
        if (depth == Depth::summary && rows.rows.size() == summary_layers) break;
        rows.rows.push_back({layer.name, significant(layer.time_us.value * 1e-3), fixed(100 * layer.share.value, 1),
                             layer.kernel, optional_text(layer.achieved_pct, 0),
                             optional_text(layer.theoretical_pct, 0), layer.limiter, layer.bound,
                             layer.recoverable_us ? significant(layer.recoverable_us->value * 1e-3) : ""});
    }
    return rows;
}

Rows batch_rows(const ExplainedResult& explained, const Study& study) {
    Rows rows{{figures("batch"), figures("ms"), figures("95 % interval", 2),
               figures(fmt::format("{}s/s", study.sequence)), figures("roof time %"), figures("occ %", 1),
               figures(fmt::format("J/{}", study.sequence), 1), words("longest roof time", 1), words("bottleneck")}};
    for (const StudyRow& row : study.batches) {
        const Point& point = explained.points()[row.point];
        const int decimals = decimals_for(row.latency_ms.value, time_digits);
        rows.rows.push_back({fmt::format("{}{}", point.batch(), point.batch_is_max ? " (max)" : ""),
                             fixed(row.latency_ms.value, decimals),
                             interval_text(row.latency_ms, row.has_interval, decimals),
                             row.sequences_per_s ? significant(*row.sequences_per_s) : "",
                             row.roof_share ? fixed(100 * *row.roof_share, 1) : "", optional_text(row.occupancy_pct, 0),
                             row.energy_j ? significant(*row.energy_j) : "", row.roof, row.bound});
    }
    return rows;
}

Rows rows_of_precisions(const ExplainedResult& explained, const Study& study) {
    Rows rows{{words("precision"), figures("ms"), figures("95 % interval", 2), figures("times as fast"),
               figures("its interval", 2), figures("roofs' ratio"), words("bottleneck"),
               words("executed as asked", 1, true)}};
    for (const StudyRow& row : study.precisions) {
        const int decimals = decimals_for(row.latency_ms.value, time_digits);
        rows.rows.push_back({std::string(name(explained.points()[row.point].precision())),
                             fixed(row.latency_ms.value, decimals),
                             interval_text(row.latency_ms, row.has_interval, decimals),
                             row.speed_up ? fixed(row.speed_up->value, 2) : "",
                             row.speed_up ? interval_text(*row.speed_up, row.has_interval, 2) : "",
                             row.roof_ratio ? fixed(*row.roof_ratio, 2) : "", row.bound, row.executed});
    }
    return rows;
}

Section answer_of(const StudyAnswer& answer) {
    Section section{std::string(answer.kind->title)};
    section.add(Paragraph{std::string(answer.kind->question)});
    Bullets findings;
    for (const StudyFinding& finding : answer.findings) findings.items.push_back(finding.text);
    if (!findings.items.empty()) section.add(std::move(findings));
    for (const std::string& note : answer.notes) section.add(Paragraph{note});
    return section;
}

/// "49 % [48 %, 50 %]", as a part of a sequence's time; where only the most is known, "at most 12 %".
std::string saved_text(const Interval& saved) {
    if (saved.low <= 0 && saved.value >= saved.high) return fmt::format("at most {}", percent(saved.high));
    return fmt::format("{} [{}, {}]", percent(saved.value), percent(saved.low), percent(saved.high));
}

Section changes_section(const Study& study) {
    Section section{"What to change"};
    if (!study.changes_unavailable.empty()) {
        section.add(Paragraph{study.changes_unavailable});
        return section;
    }
    if (study.changes.empty()) {
        section.add(Paragraph{"Nothing that was measured here would save 2 % or more of the time."});
        return section;
    }
    Rows rows{
        {words("change"),
         figures(fmt::format("saves of {} {}'s time", study.sequence == "utterance" ? "an" : "a", study.sequence)),
         words("evidence"), words("refuted by")}};
    for (const StudyChange& change : study.changes)
        rows.rows.push_back({change.what, saved_text(change.saved), change.evidence.text, change.refuted_by});
    section.add(std::move(rows));
    return section;
}

Section elsewhere_section(const ExplainedResult& explained, const Study& study, Depth depth) {
    const bool is_gpu = study.base && explained.points()[*study.base].backend() == "cuda";
    Section section{is_gpu ? "If you had another GPU" : "If you had another CPU"};
    if (study.elsewhere.empty()) return section;
    Rows rows{
        {words("machine"), figures("expected ms"), figures("times as fast"), words("longest roof time there", 1)}};
    for (const WhatIf& answer : study.elsewhere) {
        const int decimals = decimals_for(answer.there_ms.value, 3);
        const auto times = [&](double there_ms) { return significant(answer.here_ms / there_ms); };
        rows.rows.push_back(
            {answer.target,
             fmt::format("{} to {}", fixed(answer.there_ms.low, decimals), fixed(answer.there_ms.high, decimals)),
             fmt::format("{} to {}", times(answer.there_ms.high), times(answer.there_ms.low)),
             answer.by_ceiling.empty() ? "" : answer.by_ceiling.front().name});
    }
    section.add(std::move(rows));
    section.add(Paragraph{
        fmt::format("Expected of {}, not measured: {}{}", point_name(explained.points()[*study.base]),
                    tested_text(is_gpu ? "cuda" : "cpu"),
                    depth == Depth::full ? " `kbench report --what-if MACHINE` says by step what it rests on." : "")});
    return section;
}

Section exclusions_section(const Study& study) {
    Section section{"Points left aside"};
    if (study.excluded.empty()) {
        section.add(Paragraph{"None: every point that was planned was measured, and nothing speaks against it."});
        return section;
    }
    Rows rows{{words("point"), words("asked for by"), words("why")}};
    for (const StudyExclusion& excluded : study.excluded)
        rows.rows.push_back({excluded.point, joined(excluded.tasks, ", "), excluded.why});
    section.add(Paragraph{"No sentence above rests on any of these."});
    section.add(std::move(rows));
    return section;
}

/// The longest layers, split at their roof time.
Chart layer_chart(const Study& study) {
    BarChart bars{"ms", {}, {{"roof time"}, {"above"}}, true};
    for (const StudyLayer& layer : study.layers) {
        if (bars.labels.size() == charted_layers) break;
        const double us = layer.time_us.value, above_us = layer.recoverable_us ? layer.recoverable_us->value : 0;
        const std::string above = layer.recoverable_us ? fmt::format(", {} above its roofs", time_text(above_us)) : "";
        bars.labels.push_back(layer.name);
        for (const auto& [i, value] : {std::pair{0, us - above_us}, {1, above_us}}) {
            bars.series[i].add(value * 1e-3,
                               fmt::format("{}\n{}{}\n{}", layer.name, time_text(us), above, layer.bound));
        }
    }
    return {"Time by layer, ms", "measured; the second part is above its roof time", std::move(bars)};
}

Chart batch_chart(const ExplainedResult& explained, const Study& study) {
    std::vector<double> batches;
    ChartSeries rates{"throughput"};
    for (const StudyRow& row : study.batches) {
        const auto batch = static_cast<double>(explained.points()[row.point].batch());
        const auto per_s = [&](double ms) { return ms > 0 ? 1e3 * batch / ms : 0; };
        batches.push_back(batch);
        rates.values.push_back(row.sequences_per_s.value_or(per_s(row.latency_ms.value)));
        rates.low.push_back(per_s(row.latency_ms.high));
        rates.high.push_back(per_s(row.latency_ms.low));
        rates.hover.push_back(fmt::format(
            "batch {}\n{} {}s/s\n{}{}", batch, significant(rates.values.back()), study.sequence, row.bound,
            row.roof_share ? fmt::format("\nroof times are {} of the time", percent(*row.roof_share)) : ""));
    }
    CurveChart curve{{"batch", true}, {"", false, true}, {}};
    if (!batches.empty()) curve.series.push_back({std::move(batches), std::move(rates)});
    return {fmt::format("Throughput by batch, {}s/s", study.sequence),
            "measured; bars are 95 % intervals, of few samples their range", std::move(curve)};
}

/// The reference has no ratio: it is 1.
Chart precision_chart(const ExplainedResult& explained, const Study& study) {
    BarChart bars{"times", {}, {{"measured"}, {.name = "roofs", .is_faint = true}}};
    std::string reference;
    for (const StudyRow& row : study.precisions) {
        const std::string precision(name(explained.points()[row.point].precision()));
        const Interval ratio = row.speed_up.value_or(Interval::exactly(1));
        const double roofs = row.speed_up ? row.roof_ratio.value_or(no_number) : 1;
        if (!row.speed_up) reference = precision;
        bars.labels.push_back(precision);
        bars.series[0].add(ratio, fmt::format("{}, measured\n{} times", precision, significant(ratio.value)));
        bars.series[1].add(roofs, fmt::format("{}, roofs\n{} times", precision, significant(roofs)));
    }
    return {reference.empty() ? "Times as fast" : "Times as fast as " + reference,
            "what was measured, and what the measured roofs of products allow", std::move(bars)};
}

/// Every figure of every sentence, for programs that find it again from result.json.
Section evidence_section(const Study& study) {
    Rows rows{{words("sentence"), words("as it says"), words("quantity"), words("points of the result"), words("part"),
               figures("value"), figures("low"), figures("high")}};
    rows.is_long = true;
    rows.filters = {"quantity"};
    const auto add = [&](const StudyFinding& finding) {
        for (const StudyFigure& figure : finding.figures)
            rows.rows.push_back({finding.text, figure.text, figure.quantity,
                                 fmt::format("{}", fmt::join(figure.points, ", ")), figure.part,
                                 fmt::format("{:.6g}", figure.value.value), fmt::format("{:.6g}", figure.value.low),
                                 fmt::format("{:.6g}", figure.value.high)});
    };
    for (const StudyAnswer& answer : study.answers)
        for (const StudyFinding& finding : answer.findings) add(finding);
    for (const StudyChange& change : study.changes) add(change.evidence);
    return {"Figures of the sentences above", {std::move(rows)}, {}, "", true, true};
}

}  // namespace

Section study_section(const SectionContext& context) {
    const ExplainedResult& explained = context.explained;
    const Depth depth = context.depth;
    Section all{""};
    if (!context.result().study) return all;
    const Study study = study_of(explained);
    for (const StudyAnswer& answer : study.answers) {
        Section section = answer_of(answer);
        if (answer.kind->name == bottlenecks_task && !study.layers.empty()) {
            section.add(layer_chart(study));
            section.add(layer_rows(study, depth));
        }
        if (answer.kind->name == batch_task && !study.batches.empty()) {
            section.add(batch_chart(explained, study));
            section.add(batch_rows(explained, study));
        }
        if (answer.kind->name == precision_task && !study.precisions.empty()) {
            section.add(precision_chart(explained, study));
            section.add(rows_of_precisions(explained, study));
        }
        if (answer.kind->name == directions_task && study.training)
            section.add(directions_section(explained, *study.training, study.directions, depth));
        all.sections.push_back(std::move(section));
    }
    for (Section& section : std::vector{changes_section(study), elsewhere_section(explained, study, depth),
                                        exclusions_section(study), evidence_section(study)})
        all.sections.push_back(std::move(section));
    return all;
}

}  // namespace kbench
