#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"

namespace kbench {

Section verdict_section(const Verdicts& verdicts) {
    Section section{"Verdicts"};
    const Verdict& model = verdicts.model;
    if (model.subject.empty()) return section;
    const std::string what =
        model.bound == Bound::not_identifiable
            ? std::string("What binds the model is not identifiable")
            : fmt::format("The model is {}, {:.0f} % beyond the threshold", verdict_text(model), 100 * model.margin);
    section.add(Paragraph{
        fmt::format("{}, by the rule {}. What would overturn it: {}.", what, model.rule, model.overturned_by)});
    section.add(Bullets{model.evidence});
    Rows hypotheses{{{"hypothesis", Align::left}, {"finding", Align::left}, {"why", Align::left}}, {}};
    for (const Hypothesis& hypothesis : model.hypotheses)
        hypotheses.rows.push_back(
            {std::string(name(hypothesis.bound)), std::string(name(hypothesis.finding)), hypothesis.why});
    section.add(std::move(hypotheses));
    Rows layers{{{.header = "layer", .align = Align::left, .is_name = true},
                 {"verdict", Align::left},
                 {"margin %"},
                 {"evidence", Align::left},
                 {"overturned by", Align::left}},
                {},
                "By layer:"};
    for (const Verdict& layer : verdicts.layers)
        layers.rows.push_back({layer.subject, verdict_text(layer), fixed(100 * layer.margin, 0),
                               fmt::format("{}", fmt::join(layer.evidence, "; ")), layer.overturned_by});
    section.add(std::move(layers));
    return section;
}

}  // namespace kbench
