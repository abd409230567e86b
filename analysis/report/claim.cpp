// A claim is told in a few sentences, a table by precision, and as JSON.
#include "analysis/report/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

std::string_view verdict(const Claim& claim, const ClaimFloor& floor) {
    return claim.is_possible(floor) ? "possible" : "impossible";
}

std::string impossible_in(const Claim& claim) {
    return joined(claim.floors, ", ", [&](const ClaimFloor& floor) {
        return claim.is_possible(floor) ? std::string_view() : name(floor.precision);
    });
}

const ClaimFloor& of(const Claim& claim, Precision precision) {
    return *std::ranges::find(claim.floors, precision, &ClaimFloor::precision);
}

/// The least that the time leaves unexplained is for what moves most.
std::string bandwidth_sentence(const Claim& claim) {
    const ClaimFloor* most = nullptr;
    for (const ClaimFloor& floor : claim.floors)
        if (claim.is_possible(floor) && (most == nullptr || floor.bytes_s > most->bytes_s)) most = &floor;
    if (most == nullptr) return "No precision is possible, so nothing explains this time.";
    return fmt::format("Of a time that is possible, bandwidth explains at most {} % (the least traffic, in {}).",
                       significant(100 * most->bytes_s / claim.latency_s, 2), name(most->precision));
}

}  // namespace

Document claim_document(const Claim& claim) {
    Section section{""};
    section.add(Paragraph{fmt::format(
        "{} in {} on {}: {}, so {}. Peaks are the datasheet's; compulsory traffic is weights, inputs and outputs once, at {}.",
        claim.model, format_seconds(claim.latency_s), claim.machine, format_flop(claim.flops),
        format_flop_per_s(claim.flop_per_s()), format_bytes_per_s(claim.bytes_per_s))});
    if (const std::string not_so = impossible_in(claim); !not_so.empty())
        section.add(Paragraph{fmt::format("Impossible in {}.", not_so)});
    if (!claim.is_possible(of(claim, Precision::fp32)) && claim.is_possible(of(claim, Precision::tf32)))
        section.add(
            Paragraph{"A run that was called fp32 was likely tf32, which frameworks may choose for fp32 products."});
    section.add(Paragraph{bandwidth_sentence(claim)});
    Rows rows{{words("precision"), figures("FLOPs need ms"), figures("peak"), figures("of it %"), figures("compulsory"),
               figures("they need ms"), figures("bandwidth explains at most %"), words("remark"),
               words("this time is")}};
    for (const ClaimFloor& floor : claim.floors)
        rows.rows.push_back({std::string(name(floor.precision)), significant(1e3 * floor.flops_s),
                             format_flop_per_s(floor.peak_flop_per_s),
                             significant(100 * floor.flops_s / claim.latency_s), format_bytes(floor.compulsory_bytes),
                             significant(1e3 * floor.bytes_s), significant(100 * floor.bytes_s / claim.latency_s, 2),
                             floor.remark, std::string(verdict(claim, floor))});
    section.add(std::move(rows));
    return {claim.model, {std::move(section)}};
}

std::string claim_json(const Claim& claim) {
    using Json = nlohmann::ordered_json;
    Json floors = Json::array();
    for (const ClaimFloor& floor : claim.floors)
        floors.push_back({{"precision", name(floor.precision)},
                          {"flops_ms", 1e3 * floor.flops_s},
                          {"ceiling", floor.ceiling},
                          {"peak_tflop_per_s", floor.peak_flop_per_s * 1e-12},
                          {"peak_share", floor.flops_s / claim.latency_s},
                          {"compulsory_bytes", floor.compulsory_bytes},
                          {"bytes_ms", 1e3 * floor.bytes_s},
                          {"bandwidth_share", floor.bytes_s / claim.latency_s},
                          {"remark", floor.remark},
                          {"verdict", verdict(claim, floor)}});
    const Json document{{"schema", "kbench.claim/1"},
                        {"model", claim.model},
                        {"machine", claim.machine},
                        {"latency_ms", 1e3 * claim.latency_s},
                        {"flops", claim.flops},
                        {"tflop_per_s", claim.flop_per_s() * 1e-12},
                        {"gb_per_s", claim.bytes_per_s * 1e-9},
                        {"precisions", std::move(floors)}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace kbench
