// How all of it is measured, in short: for who was sent a page and nothing else.
#include "analysis/report/sections/sections.h"

namespace kbench {

Section method_section(const SectionContext&) {
    Section section{
        "Method in short",
        {Paragraph{
             "Three kinds of run, never mixed: timing runs carry no profiler and give the latency; activity runs record each kernel; counter runs read hardware counters, one range a step. The time breakdown adds the parts up to the latency of the timing runs; what recording adds, drift and residual are lines of their own."},
         Paragraph{
             "Roofs are measured on this machine. A step's roof times are the times that its FLOPs and bytes take at their roofs; what a step takes above the longest is split by counters. Verdicts come from one table of rules with thresholds."},
         Paragraph{
             "In full, with the limits of each figure: docs/method.md; fields of the result: docs/schema.md; columns of the table: docs/table.md."}}};
    section.is_only_on_page = true;
    section.is_folded = true;
    return section;
}

}  // namespace kbench
