// The backward against its forward: the parts of the step, op kinds and layers, what it means, and the largest batches.
#include "analysis/explain/directions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/explain/point_roofs.h"
#include "analysis/report/sections/sections.h"
#include "analysis/result/point_name.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

AxisValues in_direction(AxisValues axes, std::string_view direction) {
    axes.set("direction", std::string(direction));
    for (const Axis& axis : kbench::axes())
        if (axis.of_training || axis.of_backward) axes.erase(axis.name);
    return axes;
}

/// The finished point of direction fwd that is the same on every other axis.
std::optional<std::size_t> forward_of(const std::vector<Point>& points, const Point& backward) {
    const AxisValues wanted = in_direction(backward.axes, "fwd");
    for (std::size_t i = 0; i < points.size(); ++i)
        if (points[i].end_to_end && points[i].axes == wanted) return i;
    return std::nullopt;
}

/// How cells of one table write times, and whether its bytes were counted.
struct Cells {
    int time_decimals;
    enum class Counted { all, none, some } counted;
    bool has_occupancy;  ///< only a GPU has it

    std::string time(const DirectionWork& work) const {
        if (work.empty() || !work.time_us) return "";
        return fixed(work.time_us->value / 1e3, time_decimals);
    }
    std::string bytes(const DirectionWork& work) const {
        if (work.empty()) return "";
        const std::string gb = significant(work.bytes * 1e-9);
        return counted == Counted::some && !work.is_counted ? gb + " (model)" : gb;
    }
    std::string bytes_header(std::string_view of) const {
        return fmt::format("{}GB{}", of, counted == Counted::none ? " (model)" : " at DRAM");
    }
    std::string occupancy(const DirectionWork& work) const {
        if (work.empty() || !has_occupancy) return "";
        return work.occupancy_pct ? fixed(*work.occupancy_pct, 1) : "not counted";
    }
    static std::string bound(const DirectionWork& work) { return work.empty() ? "" : verdict_text(work.verdict); }
    static std::string flops(const DirectionWork& work) {
        return work.empty() || work.flops <= 0 ? "" : format_flop(work.flops);
    }
    static std::string ratio(const std::optional<double>& ratio) { return ratio ? fixed(*ratio, 2) : ""; }
    static std::string time_ratio(const DirectionPair& pair, Depth depth) {
        const std::optional<Interval> ratio = pair.time_ratio();
        if (!ratio) return "";
        if (depth == Depth::summary || !pair.forward.has_interval || !pair.backward.has_interval)
            return fixed(ratio->value, 2);
        return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio->value, ratio->low, ratio->high);
    }
};

Cells cells_of(const Directions& directions) {
    Cells cells{decimals_for(directions.time_us / 1e3, time_digits), Cells::Counted::all, directions.is_gpu};
    bool any = false, all = true;
    for (const DirectionPair& kind : directions.by_op)
        for (const DirectionWork* work : {&kind.forward, &kind.backward}) {
            any = any || (!work->empty() && work->is_counted);
            all = all && (work->empty() || work->is_counted);
        }
    cells.counted = all ? Cells::Counted::all : any ? Cells::Counted::some : Cells::Counted::none;
    return cells;
}

Rows part_rows(const Directions& directions, const Cells& cells, bool has_roofs) {
    Rows rows{{words("part"), figures("steps"), figures("ms"), figures("share %", 1), figures("FLOPs", 2),
               figures("TFLOP/s"), figures(cells.bytes_header("")), figures("occupancy %"),
               words(has_roofs ? "bound" : "", 0, true)}};
    const auto add = [&](std::string_view part, const DirectionWork& work, bool is_of_step) {
        if (work.empty()) return;
        const double us = work.time_us ? work.time_us->value : 0;
        rows.rows.push_back({std::string(part), std::to_string(work.steps.size()), cells.time(work),
                             us > 0 && is_of_step ? fixed(100 * us / directions.time_us, 1) : "", Cells::flops(work),
                             us > 0 && work.flops > 0 ? significant(work.flops / us * 1e-6) : "", cells.bytes(work),
                             cells.occupancy(work), has_roofs ? Cells::bound(work) : ""});
    };
    add("forward", directions.whole.forward, directions.is_one_point);
    add("loss and its gradient", directions.loss, true);
    add("backward", directions.whole.backward, true);
    add("optimizer", directions.optimizer, true);
    return rows;
}

/// "+bias" forward, and backward behind it.
std::string fused_cell(const DirectionPair& pair) {
    std::vector<std::string> parts;
    const auto add = [&](std::string_view direction, const DirectionWork& work) {
        if (!work.fused.empty()) parts.push_back(fmt::format("{} +{}", direction, fmt::join(work.fused, " +")));
    };
    add("fwd", pair.forward);
    add("bwd", pair.backward);
    if (!pair.forward_within.empty()) parts.push_back(fmt::format("fwd in {}", fmt::join(pair.forward_within, ", ")));
    return joined(parts, ", ");
}

/// Times and FLOPs, bytes, occupancy and what binds, forward and backward side by side.
Rows pair_rows(const std::vector<DirectionPair>& pairs, std::string_view what, const Cells& cells, bool has_roofs,
               Depth depth) {
    const bool is_full = depth == Depth::full;
    Rows rows{{TableColumn{.header = std::string(what), .align = Align::left, .is_name = what == "layer"},
               figures("fwd ms"), figures("bwd ms"), figures("ratio")}};
    const auto column = [&rows](TableColumn next) { rows.columns.push_back(std::move(next)); };
    if (is_full) {
        column({"fwd FLOPs"});
        column({"bwd FLOPs"});
    }
    column({"FLOPs ratio"});
    // In a summary the table of parts says whether they are DRAM's.
    column({is_full ? cells.bytes_header("fwd ") : "fwd GB"});
    column({is_full ? cells.bytes_header("bwd ") : "bwd GB"});
    if (is_full) column({"bytes ratio"});
    column({"fwd occ %", Align::right, 2});
    column({"bwd occ %", Align::right, 2});
    if (is_full && has_roofs) {
        column({"fwd bound", Align::left});
        column({"bwd bound", Align::left});
    }
    if (is_full) column({"computed along", Align::left});
    const DirectionWork none;
    // A product of several has no forward figures of its own: these stand in the row of all of them.
    const auto add = [&](const std::string& name, const DirectionPair& pair, bool is_product) {
        const DirectionWork &forward = is_product ? none : pair.forward, &backward = pair.backward;
        std::vector<std::string> cell{name, cells.time(forward), cells.time(backward), Cells::time_ratio(pair, depth)};
        const auto put = [&cell](bool is_shown, std::initializer_list<std::string> texts) {
            if (is_shown) cell.insert(cell.end(), texts);
        };
        put(is_full, {Cells::flops(forward), Cells::flops(backward)});
        put(true, {Cells::ratio(pair.flop_ratio()), cells.bytes(forward), cells.bytes(backward)});
        put(is_full, {Cells::ratio(pair.byte_ratio())});
        put(true, {cells.occupancy(forward), cells.occupancy(backward)});
        put(is_full && has_roofs, {Cells::bound(forward), Cells::bound(backward)});
        put(is_full, {is_product ? std::string() : fused_cell(pair)});
        rows.rows.push_back(std::move(cell));
    };
    for (const DirectionPair& pair : pairs) {
        add(pair.name, pair, false);
        for (const auto& [direction, work] : pair.products)
            add(fmt::format("{} {}", pair.name, direction == Direction::fwd ? "again" : name(direction)),
                {pair.name, pair.forward, work, {}, {}}, true);
    }
    return rows;
}

std::string largest_text(const ExplainedResult& explained, const Point& point) {
    std::vector<LargestBatch> known = point.largest_batches;
    for (const Point& other : explained.points()) {
        if (!(in_direction(other.axes, "fwd") == in_direction(point.axes, "fwd"))) continue;
        for (const LargestBatch& batch : other.largest_batches) {
            const auto found = std::ranges::find(known, batch.direction, &LargestBatch::direction);
            if (found == known.end())
                known.push_back(batch);
            else if (batch.ran)
                *found = batch;
        }
    }
    return largest_batches_text(known);
}

/// Whether the figures of the point, and of the forward that it is compared with, carry conclusions.
bool concludes(const ExplainedResult& explained, std::size_t index, const Directions& directions) {
    if (!explained.of(index).concludes()) return false;
    if (directions.forward_point == nullptr) return true;
    return explained.of(static_cast<std::size_t>(directions.forward_point - explained.points().data())).concludes();
}

/// The time of each op kind in both directions.
Chart pair_chart(const std::vector<DirectionPair>& pairs) {
    BarChart bars{"ms", {}, {{"forward"}, {"backward"}}};
    for (const DirectionPair& pair : pairs) {
        const auto ms = [](const DirectionWork& work) {
            return work.time_us && !work.empty() ? work.time_us->value / 1e3 : no_number;
        };
        const double both[] = {ms(pair.forward), ms(pair.backward)};
        if (std::isnan(both[0]) && std::isnan(both[1])) continue;
        bars.labels.push_back(pair.name);
        for (std::size_t i = 0; i < std::size(both); ++i)
            bars.series[i].add(both[i],
                               fmt::format("{}, {}\n{} ms", pair.name, bars.series[i].name, significant(both[i])));
    }
    return {"Time by op kind, ms", "measured; a kind without a bar has no steps of its own in that direction",
            std::move(bars)};
}

}  // namespace

std::string largest_batches_text(const std::vector<LargestBatch>& batches) {
    std::vector<std::string> parts;
    std::string memory;
    for (const LargestBatch& largest : batches) {
        const std::string how = largest.batch == 0 ? "not even 1" : std::to_string(largest.batch);
        parts.push_back(fmt::format("{} {}{}", largest.direction, how, largest.ran ? " (run)" : ""));
        memory = format_bytes(static_cast<double>(largest.available_bytes));
    }
    if (parts.empty()) return "";
    return fmt::format("{}, in {}", fmt::join(parts, ", "), memory);
}

Directions directions_of(const ExplainedResult& explained, std::size_t index) {
    const Point& point = explained.points()[index];
    const Explanation& backward = explained.of(index);
    if (point.direction() == "train") return forward_against_backward(&backward, backward);
    if (point.direction() != "bwd") return {};
    const std::optional<std::size_t> forward = forward_of(explained.points(), point);
    return forward_against_backward(forward ? &explained.of(*forward) : nullptr, backward);
}

Section directions_section(const SectionContext& context) {
    return directions_section(context.explained, context.index, directions_of(context.explained, context.index),
                              context.depth);
}

Section directions_section(const ExplainedResult& explained, std::size_t index, const Directions& directions,
                           Depth depth) {
    Section section{"Forward against backward"};
    if (directions.empty()) return section;
    const std::string largest = largest_text(explained, explained.points()[index]);
    const auto add_largest = [&] {
        if (!largest.empty())
            section.add(Paragraph{fmt::format("Largest batch whose planned memory fits, by direction: {}.", largest)});
    };
    if (!directions.unavailable.empty()) {
        section.add(Paragraph{directions.unavailable, Tone::missing});
        add_largest();
        return section;
    }
    const bool is_full = depth == Depth::full;
    const Explanation& explanation = explained.of(index);
    const bool has_roofs = explanation.breakdown.roofs_unavailable.empty();
    const Cells cells = cells_of(directions);
    if (directions.forward_point == nullptr)
        section.add(Paragraph{"No forward was measured with it: --direction fwd,bwd or train does.", Tone::plain});
    else if (!directions.is_one_point)
        section.add(Paragraph{fmt::format("The forward is a point of its own, {}, which keeps nothing for a backward.",
                                          point_name(*directions.forward_point))});
    Rows parts = part_rows(directions, cells, has_roofs),
         kinds = pair_rows(directions.by_op, "op", cells, has_roofs, depth);
    if (is_full) {
        parts.caption = "Its parts:";
        kinds.caption = "By op kind:";
    }
    if (is_full) section.add(pair_chart(directions.by_op));
    section.add(std::move(parts));
    section.add(std::move(kinds));
    if (!has_roofs && is_full)
        section.add(
            Paragraph{fmt::format("Their bottleneck is unknown: {}.", explanation.breakdown.roofs_unavailable)});
    if (concludes(explained, index, directions) && !directions.findings.empty()) {
        if (is_full)
            section.add(Section{"What it means", {Bullets{directions.findings}}});
        else
            section.add(Paragraph{directions.findings.front()});
    }
    add_largest();
    if (!is_full) return section;
    section.add(Section{"Forward against backward by layer (* is every block)",
                        {pair_rows(directions.by_layer, "layer", cells, has_roofs, depth)}});
    section.add(Paragraph{
        "Times are measured, backward over forward with the ends of the step runs' intervals; FLOPs are the cost model's, of useful work; bytes of (model) are its unfused traffic, as DRAM was not counted. A backward step stands in the layer of the step that computed its op forward."});
    return section;
}

}  // namespace kbench
