// The table of options of `kbench report`.
#include "bench/command/report_options.h"

#include "bench/command/command.h"

namespace kbench {
namespace {

/// all, the files' words, text.
std::vector<std::string_view> format_words() {
    std::vector<std::string_view> words{"all"};
    for (const ReportFormat& format : report_formats()) words.push_back(format.name);
    words.push_back("text");
    words.push_back("json");
    return words;
}

const OptionOf<ReportRequest> table[] = {
    {"--out", "DIR", "beside the result",
     "where the reports go; made if it is not there. What stands there and is no report of this result is not written over",
     [](ReportRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--out '': name a directory");
         r.out = text;
     }},
    {"--format", "F", "all",
     "all files, one of them (html, md, trace), or text: the summary on stdout and no file; json with --what-if",
     [](ReportRequest& r, const std::string& text) { r.format = word("--format", text, format_words()); }},
    {"--what-if", "MACHINE", "",
     "instead: the latency expected on a machine (`kbench list machines`, or a machine file) or on that of another result, on stdout and no file",
     [](ReportRequest& r, const std::string& text) {
         if (text.empty()) throw UsageError("--what-if '': name a machine of `kbench list machines`, or a result");
         r.what_if = text;
     }},
};

}  // namespace

std::span<const OptionOf<ReportRequest>> report_options() { return table; }

std::string report_markdown() {
    return "# kbench report\n\n"
           "Written from the table in bench/command/report_options.cpp by a test; `kbench report --help` says the same.\n\n"
           "    kbench report RESULT [options]\n\n"
           "RESULT is a result.json or the directory that holds one; the points of a directory without one are joined. Nothing is measured and result.json stays as it is. `kbench run` writes the same files at its end. Results of older schemas work, without what they lack.\n\n" +
           markdown_of(report_options()) +
           "\n## report.html\n\n"
           "One file that needs no network: plotly.js, styles, scripts and all figures are in it, and its content security policy lets no request leave. In this order: the answer in three sentences; key figures; the backward against its forward; the roofline, with levels of memory, ops and layers to switch on and off; the ledger; marginal costs beside it; time against SMs; bytes by role and level; layers by metric; the points of a sweep; the timeline; verdicts with evidence and what would overturn them; ceilings; every step and kernel, sortable; environment and conditions; the method.\n\n"
           "Every figure says whether it is measured, derived, estimated or unavailable; what is missing says why. A click on a mark of the roofline or a bar of the timeline selects the step's row, a click on a row its marks. Everything but hovering and zooming works by keyboard; the page is light or dark as the system is, until its button decides; printed it is light, with the first 60 rows of the long table.\n\n"
           "## report.md and trace.json\n\n"
           "report.md says the same in tables, for a pull request. trace.json opens in Perfetto and chrome://tracing: one forward by its medians on the tracks layer, step, kernel and copies, with counter tracks, and the machine's conditions during the timing run beside it.\n\n"
           "## Forward against backward\n\n"
           "Of a point of direction train, and of one of direction bwd, which stands against the point of direction fwd that is equal otherwise (`--direction fwd,bwd`). By op kind and by layer, forward and backward side by side: time with the interval of its ratio, FLOPs, bytes, achieved occupancy and what binds, by the rules of the verdicts. A GEMM's dgrad and wgrad stand together and apart. Bytes are those counted at DRAM; where they were not, the header says `(model)` and they are the cost model's. A step that computes the loss and its gradient at once, and the optimizer, are of neither direction. A backward step belongs to the step that computed its op forward: a bias fused into a GEMM has a backward of its own in the GEMM's layer. Where cuBLASLt sums a bias's gradient beside `wgrad`, or applies GELU's slope behind `dgrad`, that time is the GEMM's, as it is forward: the column \"computed along\" names what went with it.\n\n"
           "What it means, a sentence an op kind: by how much the time grew more than the FLOPs, or than the bytes where DRAM binds both directions. A difference within the intervals is none, and times measured once decide nothing.\n\n"
           "The largest batch of each direction is the one whose plan fits into the memory that was free, with AdamW in training unless the run has no optimizer; `(run)` where `--batch max` proved it. A backward alone runs again and again, so it keeps all that its forward left, of which a training step can drop parts.\n\n"
           "## --what-if\n\n"
           "Each step's time on the other machine is what that machine's longest roof demands of the same FLOPs and bytes over the share that the binding roof has of the step's time here; the other end of the interval keeps the time above the demand as it is here. All of it is derived, under assumptions that are printed with it. Where MACHINE is a result that has the same point, its measurement and the error stand beside the expectation, which is then at the clock that the SMs had there; so a run with `--sms 96` tells how far off it is. Nothing is expected between a GPU and a CPU: what was tried missed.\n";
}

ParsedReport parse_report(const std::vector<std::string>& arguments) {
    ParsedReport parsed;
    std::vector<std::string> files;
    constexpr CommandText command{
        "kbench report", "Draws the reports of a result again. Nothing is measured; result.json stays as it is.",
        "RESULT", "result.json, or the directory that holds one"};
    parsed.help = parse_options(command, report_options(), parsed.request, arguments, &files);
    if (!parsed.help.empty()) return parsed;
    if (parsed.request.format == "json" && parsed.request.what_if.empty())
        throw UsageError("--format json: is of --what-if alone; a result.json is JSON already");
    if (files.size() != 1)
        throw UsageError(
            files.empty() ? "no RESULT: name a result.json or the directory that holds one, as in `kbench report FILE`"
                          : fmt::format("'{}': a report is of one RESULT; `kbench table` takes several", files[1]));
    parsed.request.file = files.front();
    return parsed;
}

}  // namespace kbench
