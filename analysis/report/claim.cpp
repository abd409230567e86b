// A claim is told in a few sentences, a table by precision, and as JSON.
#include "analysis/report/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

std::string_view answer_of(const Claim& claim, const ClaimFloor& floor) {
    return name(claim.is_bandwidth_bound(floor));
}

std::string_view verdict(const Claim& claim, const ClaimFloor& floor) {
    return claim.is_possible(floor) ? "possible" : "impossible";
}

std::string impossible_in(const Claim& claim) {
    return joined(claim.floors, ", ", [&](const ClaimFloor& floor) {
        return claim.is_possible(floor) ? std::string_view() : name(floor.precision);
    });
}

/// Percent of the time that the precision is said or assumed to take.
double share(const Claim& claim, const ClaimFloor& floor, double seconds) {
    return 100 * seconds / claim.seconds(floor);
}

/// "5.2", "5.2 to 34": what compulsory and unfused traffic take, as percent of the time, of which neither takes more
/// than all.
std::string bandwidth_range(const Claim& claim, const ClaimFloor& floor) {
    const std::string least = significant(std::min(100.0, share(claim, floor, floor.compulsory_s)), 2),
                      most = significant(std::min(100.0, share(claim, floor, floor.unfused_s)), 2);
    return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string what_it_means(const Claim& claim, const ClaimFloor& floor) {
    switch (claim.is_bandwidth_bound(floor)) {
        case BandwidthAnswer::no:
            return floor.unfused_s < floor.flops_s ? "the FLOPs alone need longer"
                                                   : "even so, less than half of the time is traffic";
        case BandwidthAnswer::yes: return "any program must move that much";
        case BandwidthAnswer::cannot_tell: break;
    }
    return "it depends on what the program fused and what a cache kept: count its DRAM bytes";
}

std::string peaks_sentence(const Claim& claim) {
    if (!claim.tdp_w) return "Peaks are the datasheet's.";
    return fmt::format("Peaks are the datasheet's; at the power limit of {:.0f} W large products run below them.",
                       *claim.tdp_w);
}

void add_answer(Section& section, const Claim& claim) {
    const std::optional<Precision> precision = claim.headline();
    if (!precision) {
        section.add(
            Paragraph{"Impossible in every precision that programs usually compute in, so nothing explains this time.",
                      Tone::lead});
        return;
    }
    const ClaimFloor& floor = claim.floor(*precision);
    const std::string_view why = claim.claimed && claim.is_claimed ? "as claimed"
                                 : claim.claimed                   ? "as asked"
                                 : *precision == Precision::fp32   ? "the usual one"
                                                                   : "likely, since fp32 is impossible";
    const std::string time = claim.is_claimed
                                 ? "this time is"
                                 : fmt::format("it takes {} at the least, which is", format_seconds(claim.latency_s));
    if (!claim.is_possible(floor)) {
        section.add(Paragraph{fmt::format("In {} ({}) this time is impossible: it takes {} at the least.",
                                          name(*precision), why, format_seconds(floor.floor_s())),
                              Tone::lead});
        return;
    }
    section.add(Paragraph{
        fmt::format("In {} ({}) {} {} % of the peak. Bandwidth-bound? {}: DRAM explains {} % of the time{}, and {}.",
                    name(*precision), why, time, significant(share(claim, floor, floor.flops_s)),
                    answer_of(claim, floor), bandwidth_range(claim, floor),
                    claim.fused.empty() ? "" : fmt::format(" (with {})", claim.fused), what_it_means(claim, floor)),
        Tone::lead});
    section.add(Paragraph{peaks_sentence(claim)});
}

}  // namespace

/// The least times in each precision, to compare with the claimed one.
static Chart floors_chart(const Claim& claim) {
    BarChart bars{"ms", {}, {{"FLOPs at the peak"}, {"least traffic at DRAM"}, {"unfused traffic at DRAM"}}};
    if (claim.is_claimed) bars.series.push_back({.name = "claimed", .is_faint = true});
    for (const ClaimFloor& floor : claim.floors) {
        bars.labels.emplace_back(name(floor.precision));
        const double seconds[] = {floor.flops_s, floor.compulsory_s, floor.unfused_s, claim.latency_s};
        for (std::size_t i = 0; i < bars.series.size(); ++i)
            bars.series[i].add(1e3 * seconds[i], fmt::format("{}, {}\n{}", bars.labels.back(), bars.series[i].name,
                                                             format_seconds(seconds[i])));
    }
    return {"What it takes at the least, ms",
            fmt::format("derived from the model's work and the datasheet{}",
                        claim.is_claimed ? "; the claimed time is grey" : ""),
            std::move(bars)};
}

Document claim_document(const Claim& claim) {
    Section section{""};
    add_answer(section, claim);
    if (const std::string not_so = impossible_in(claim); !not_so.empty() && claim.headline())
        section.add(Paragraph{fmt::format("Impossible in {}.", not_so)});
    const std::string devices = claim.devices == 1 ? "" : fmt::format("{} devices, each ", claim.devices);
    section.add(Paragraph{fmt::format("{} in {} on {}{}: {}, so {}{}, with {} of memory bandwidth.", claim.what,
                                      format_seconds(claim.latency_s), devices, claim.machine, format_flop(claim.flops),
                                      format_flop_per_s(claim.flop_per_s()), claim.devices == 1 ? "" : " each",
                                      format_bytes_per_s(claim.bytes_per_s))});
    section.add(floors_chart(claim));
    Rows rows{{words("precision"), figures("FLOPs ms"), figures("peak", 2), figures("% of peak"),
               figures("least traffic", 1), figures("DRAM ms", 1), figures("unfused traffic", 1), figures("DRAM ms", 1),
               figures("bandwidth explains %"), words("remark"),
               words(claim.is_claimed ? "this time is" : "bandwidth-bound?")}};
    for (const ClaimFloor& floor : claim.floors)
        rows.rows.push_back({std::string(name(floor.precision)), significant(1e3 * floor.flops_s),
                             format_flop_per_s(floor.peak_flop_per_s), significant(share(claim, floor, floor.flops_s)),
                             format_bytes(floor.compulsory_bytes), significant(1e3 * floor.compulsory_s),
                             format_bytes(floor.unfused_bytes), significant(1e3 * floor.unfused_s),
                             bandwidth_range(claim, floor), floor.remark,
                             std::string(claim.is_claimed ? verdict(claim, floor) : answer_of(claim, floor))});
    section.add(std::move(rows));
    return {claim.what, {std::move(section)}};
}

std::string claim_json(const Claim& claim) {
    using Json = nlohmann::ordered_json;
    Json floors = Json::array();
    for (const ClaimFloor& floor : claim.floors)
        floors.push_back(
            {{"precision", name(floor.precision)},
             {"flops_ms", 1e3 * floor.flops_s},
             {"ceiling", floor.ceiling},
             {"peak_tflop_per_s", floor.peak_flop_per_s * 1e-12},
             {"peak_share", floor.flops_s / claim.seconds(floor)},
             {"compulsory_bytes", floor.compulsory_bytes},
             {"compulsory_ms", 1e3 * floor.compulsory_s},
             {"unfused_bytes", floor.unfused_bytes},
             {"unfused_ms", 1e3 * floor.unfused_s},
             {"bandwidth_share", {floor.compulsory_s / claim.seconds(floor), floor.unfused_s / claim.seconds(floor)}},
             {"bandwidth_bound", answer_of(claim, floor)},
             {"remark", floor.remark},
             {"verdict", verdict(claim, floor)}});
    Json document{{"schema", "kbench.claim/2"},
                  {"what", claim.what},
                  {"machine", claim.machine},
                  {"devices", claim.devices},
                  {"latency_ms", 1e3 * claim.latency_s},
                  {"is_claimed", claim.is_claimed},
                  {"flops", claim.flops},
                  {"tflop_per_s", claim.flop_per_s() * 1e-12},
                  {"gb_per_s", claim.bytes_per_s * 1e-9}};
    if (claim.claimed) document["claimed_precision"] = name(*claim.claimed);
    if (const std::optional<Precision> precision = claim.headline()) document["headline_precision"] = name(*precision);
    document["precisions"] = std::move(floors);
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace kbench
