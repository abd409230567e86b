// The report's data of a study: its sections as the document has them, and a chart an answer.
#include "analysis/report/html_parts.h"
#include "analysis/report/sections/sections.h"
#include "analysis/study/study.h"

namespace kbench {
namespace {

/// Of each layer its time, and the part of it above its roofs; null where that is not known.
ReportJson layer_bars(const Study& study) {
    ReportJson rows = ReportJson::array();
    for (const StudyLayer& layer : study.layers)
        rows.push_back({layer.name, report_number(layer.time_us.value * 1e-3),
                        layer.recoverable_us ? report_number(layer.recoverable_us->value * 1e-3) : ReportJson(),
                        layer.bound});
    return rows;
}

ReportJson batch_curve(const ExplainedResult& explained, const Study& study) {
    ReportJson rows = ReportJson::array();
    for (const StudyRow& row : study.batches) {
        const Point& point = explained.points()[row.point];
        const auto per_s = [&](double ms) { return ms > 0 ? 1e3 * static_cast<double>(point.batch()) / ms : 0; };
        rows.push_back({point.batch(), optional_number(row.sequences_per_s), report_number(per_s(row.latency_ms.high)),
                        report_number(per_s(row.latency_ms.low)), row.bound,
                        row.roof_share ? report_number(100 * *row.roof_share) : ReportJson()});
    }
    return rows;
}

/// The reference has no ratio: it is 1.
ReportJson precision_bars(const ExplainedResult& explained, const Study& study) {
    ReportJson rows = ReportJson::array();
    for (const StudyRow& row : study.precisions) {
        const Interval ratio = row.speed_up.value_or(Interval::exactly(1));
        rows.push_back({name(explained.points()[row.point].precision()), report_number(ratio.value),
                        report_number(ratio.low), report_number(ratio.high),
                        row.speed_up ? optional_number(row.roof_ratio) : ReportJson(1)});
    }
    return rows;
}

ReportJson finding_data(const StudyFinding& finding, std::string_view task) {
    ReportJson figures = ReportJson::array();
    for (const StudyFigure& figure : finding.figures)
        figures.push_back({{"quantity", figure.quantity},
                           {"points", figure.points},
                           {"part", figure.part},
                           {"value", report_number(figure.value.value)},
                           {"low", report_number(figure.value.low)},
                           {"high", report_number(figure.value.high)},
                           {"text", figure.text}});
    return {{"task", task}, {"text", finding.text}, {"figures", std::move(figures)}};
}

/// Every sentence with its figures: for programs that find them again from result.json.
ReportJson findings_data(const Study& study) {
    ReportJson list = ReportJson::array();
    for (const StudyAnswer& answer : study.answers)
        for (const StudyFinding& finding : answer.findings) list.push_back(finding_data(finding, answer.kind->name));
    for (const StudyChange& change : study.changes) list.push_back(finding_data(change.evidence, "changes"));
    return list;
}

}  // namespace

ReportJson study_data(const ExplainedResult& explained) {
    if (!explained.result().study) return nullptr;
    const Study study = study_of(explained);
    ReportJson answers = ReportJson::array(), others = ReportJson::array();
    const std::vector<Section> sections = study_sections(explained, study, Depth::full);
    for (std::size_t i = 0; i < sections.size(); ++i) {
        if (i >= study.answers.size()) {
            others.push_back(section_data(sections[i]));
            continue;
        }
        ReportJson answer = section_data(sections[i]);
        answer["name"] = study.answers[i].kind->name;
        answers.push_back(std::move(answer));
    }
    return {{"answers", std::move(answers)},
            {"others", std::move(others)},
            {"findings", findings_data(study)},
            {"layers", layer_bars(study)},
            {"throughput", std::string(study.sequence) + "s/s"},
            {"batches", batch_curve(explained, study)},
            {"precisions", precision_bars(explained, study)},
            {"ops", study.training ? direction_bars(study.directions) : ReportJson::array()}};
}

}  // namespace kbench
