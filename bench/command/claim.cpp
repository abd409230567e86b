// kbench claim: a published figure against physics. Nothing is measured.
#include <fmt/format.h>

#include <cstdio>

#include "analysis/report/claim.h"
#include "bench/command/claim_options.h"
#include "bench/command/command.h"
#include "bench/command/machine_path.h"
#include "bench/device/console.h"
#include "kbench/error.h"

namespace kbench {

int claim_command(const std::vector<std::string>& arguments, const std::string&) {
    const ParsedClaim parsed = parse_claim(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const ClaimRequest& request = parsed.request;
    for (const std::string& note : request.spec.notes) say("kbench: {}\n", note);
    Claim claim = check_claim(request.spec.build(request.at), machine_at(request.machine), request.latency_s);
    for (const ModelAxis& axis : request.spec.axes)
        if (axis.is_count()) {
            const auto asked = request.at.counts.find(axis.name);
            claim.model +=
                fmt::format(", {} {}", axis.name, asked == request.at.counts.end() ? axis.usual : asked->second);
        }
    for (const auto& [axis, word] : request.at.words) claim.model += fmt::format(", {} {}", axis, word);
    const std::string text =
        request.format == "json" ? claim_json(claim) : written(claim_document(claim), request.format);
    put_text(text);
    return 0;
}

}  // namespace kbench
