#include "analysis/report/sections/sections.h"

namespace kbench {

Section answer_section(const Explanation& explanation) {
    Section section{"Why it takes this long"};
    for (const std::string& sentence : explanation.answer) section.add(Paragraph{sentence});
    return section;
}

Section warnings_section(const Result& result) { return {"Warnings", {Bullets{result.warnings}}}; }

}  // namespace kbench
