// Why it takes this long: the answer in sentences, in a summary with what the time is made of.
#include "analysis/report/sections/sections.h"

namespace kbench {

Section answer_section(const SectionContext& context) {
    const Explanation& explanation = context.explanation();
    if (context.is_full()) return first_screen_section(context);
    Section section{"Why it takes this long"};
    const bool has_breakdown = explanation.breakdown.unavailable.empty() && explanation.breakdown.end_to_end_us > 0;
    if (has_breakdown || !explanation.concludes())
        for (const std::string& sentence : explanation.answer) section.add(Paragraph{sentence, Tone::lead});
    for (Block& block : time_breakdown_section(explanation.breakdown, Depth::summary).blocks)
        section.add(std::move(block));
    return section;
}

}  // namespace kbench
