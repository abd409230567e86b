// What the run warned of.
#include "analysis/report/sections/sections.h"

namespace kbench {

Section warnings_section(const SectionContext& context) {
    const std::vector<std::string>& warnings = context.result().warnings;
    if (context.is_full()) return {"Warnings", {Bullets{warnings}}};
    Section section{""};
    for (const std::string& warning : warnings) section.add(Paragraph{warning, Tone::warning});
    return section;
}

}  // namespace kbench
