#include <fmt/format.h>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

Rows step_rows(const std::vector<Verdict>& verdicts) {
    Rows rows{{names("step"), words("verdict"), words("rule"), figures("margin %"), words("evidence"),
               words("overturned by")}};
    rows.is_long = true;
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
        const Verdict& step = verdicts[i];
        rows.rows.push_back({step.subject, verdict_text(step), step.rule, fixed(100 * step.margin, 0),
                             joined(step.evidence, "; "), step.overturned_by});
        rows.keys.emplace_back(i);
    }
    return rows;
}

Rows rule_rows() {
    Rows rows{{names("rule"), words("verdict"), words("condition")}};
    for (const VerdictRule& rule : verdict_rules())
        rows.rows.push_back({std::string(rule.id), std::string(name(rule.bound)), rule.text()});
    return rows;
}

}  // namespace

Section verdicts_section(const SectionContext& context) {
    const Verdicts& verdicts = context.explanation().verdicts;
    Section section{"Verdicts"};
    const Verdict& model = verdicts.model;
    if (model.subject.empty()) return section;
    const std::string what =
        model.bound == Bound::not_identifiable
            ? std::string("The bottleneck of the model is unknown")
            : fmt::format("The model is {}, {:.0f} % beyond the threshold", verdict_text(model), 100 * model.margin);
    section.add(Paragraph{
        fmt::format("{}, by the rule {}. What would overturn it: {}.", what, model.rule, model.overturned_by)});
    section.add(Bullets{model.evidence});
    Rows hypotheses{{words("hypothesis"), words("finding"), words("why")}};
    for (const Hypothesis& hypothesis : model.hypotheses)
        hypotheses.rows.push_back(
            {std::string(name(hypothesis.bound)), std::string(name(hypothesis.finding)), hypothesis.why});
    section.add(std::move(hypotheses));
    if (context.explanation().concludes()) {
        Rows suspects{{words("resource"), words("finding"), figures("at most ms"), words("why")}};
        for (const Suspect& suspect : context.explanation().suspects.whole)
            if (!suspect.why.empty())
                suspects.rows.push_back({std::string(suspect.name), std::string(name(suspect.finding)),
                                         significant(suspect.most_us * 1e-3), suspect.why});
        section.add(std::move(suspects));
    }
    Rows layers{{names("layer"), words("verdict"), figures("margin %"), words("evidence"), words("overturned by")},
                {},
                "By layer:"};
    for (const Verdict& layer : verdicts.layers)
        layers.rows.push_back({layer.subject, verdict_text(layer), fixed(100 * layer.margin, 0),
                               joined(layer.evidence, "; "), layer.overturned_by});
    section.add(std::move(layers));
    if (verdicts.steps.size() == context.explanation().roof_times.size())
        section.add(Section{"By step", {step_rows(verdicts.steps)}, {}, "", true, true});
    section.add(Section{"The rules, in their order", {rule_rows()}, {}, "", true, true});
    return section;
}

}  // namespace kbench
