// Which steps are of which direction, and their sums.
#include "analysis/explain/directions.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/explain/judge.h"
#include "analysis/facts/point_facts.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

std::string_view layer_of(std::string_view label) { return label.substr(0, label.rfind(':')); }

/// The time on the device between the ends of its samples. Recorded kernels look longer than they are.
std::optional<Interval> time_of(const StepFacts& step) {
    Interval time = step.device_us;
    if (time.value <= 0) return std::nullopt;
    time.low = std::max(0.0, time.low - std::max(0.0, step.recording_us));
    time.high -= std::min(0.0, step.recording_us);
    return time;
}

/// The sums of `work`'s steps.
DirectionWork summed(DirectionWork work, const std::string& name, const Explanation& source) {
    if (work.empty()) return work;
    work.time_us = Interval{};
    double counted = 0, unfused = 0, occupied_us = 0;
    bool has_occupancy = true;
    for (const std::size_t i : work.steps) {
        const StepFacts& facts = source.facts.steps[i];
        const StepResult& step = *facts.step;
        const std::optional<Interval> time = time_of(facts);
        if (!time) work.time_us.reset();
        if (work.time_us) *work.time_us += *time;
        work.has_interval = work.has_interval && step.time_us && step.time_us->n > 1;
        if (!step.is_recomputed()) work.flops += step.cost.flops;
        unfused += step.cost.bytes();
        const std::optional<double> bytes = dram_traffic(facts.counters), occupancy = facts.counters.achieved_occupancy;
        work.is_counted = work.is_counted && bytes && facts.dram_origin == Origin::measured;
        counted += bytes.value_or(0);
        has_occupancy = has_occupancy && occupancy;
        occupied_us += occupancy.value_or(0) * (time ? time->value : 0);
        for (const std::string& label : step.absorbs)
            if (kind_of(label) != step.op) add_once(work.fused, kind_of(label));
    }
    work.bytes = work.is_counted ? counted : unfused;
    if (has_occupancy && work.time_us) work.occupancy_pct = occupied_us / work.time_us->value;
    work.verdict = judge_together(name, source.facts, source.verdicts, work.steps);
    return work;
}

/// What a step is part of.
enum class StepPart { forward, loss, backward, optimizer };

/// Forward steps behind the last backward one update weights; what is computed again is for the backward. In training a
/// backward step that has no forward one, in front of the first that has, is the loss: it computes both at once.
std::vector<StepPart> parts_of(const Point& point, const ForwardSteps& forwards) {
    const std::vector<StepResult>& steps = point.steps;
    std::size_t first = steps.size(), behind = 0;
    for (std::size_t i = steps.size(); i-- > 0;) {
        if (steps[i].direction == Direction::fwd) continue;
        if (behind == 0) behind = i + 1;
        if (forwards.of(steps[i]) != nullptr) first = i;
    }
    if (first == steps.size() || point.direction() != "train") first = 0;
    std::vector<StepPart> parts;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].is_recomputed())
            parts.push_back(StepPart::backward);
        else if (steps[i].direction == Direction::fwd)
            parts.push_back(behind == 0 || i < behind ? StepPart::forward : StepPart::optimizer);
        else
            parts.push_back(i < first ? StepPart::loss : StepPart::backward);
    }
    return parts;
}

DirectionPair& pair_called(std::vector<DirectionPair>& pairs, const std::string& name) {
    return entry(pairs, &DirectionPair::name, name);
}

/// Sums both directions; those of one that was computed in several directions apart, too.
void sum(DirectionPair& pair, const Explanation& forward, const Explanation& backward) {
    std::map<Direction, DirectionWork> apart;
    for (const std::size_t i : pair.backward.steps) apart[backward.facts.steps[i].step->direction].steps.push_back(i);
    if (apart.size() > 1)
        for (auto& [direction, work] : apart)
            pair.products.emplace_back(direction, summed(std::move(work), pair.name, backward));
    pair.forward = summed(std::move(pair.forward), pair.name, forward);
    pair.backward = summed(std::move(pair.backward), pair.name, backward);
}

void sum_and_sort(std::vector<DirectionPair>& pairs, const Explanation& forward, const Explanation& backward) {
    for (DirectionPair& pair : pairs) sum(pair, forward, backward);
    std::ranges::stable_sort(pairs, std::greater{}, [](const DirectionPair& pair) {
        const auto us = [](const DirectionWork& work) { return work.time_us ? work.time_us->value : 0; };
        return us(pair.forward) + us(pair.backward);
    });
}

/// A step of a backward measured alone names its forward, too.
std::string_view layer_forward(const StepResult& step, const StepResult* forward) {
    if (forward != nullptr) return forward->layer;
    return step.forward ? layer_of(*step.forward) : std::string_view(step.layer);
}

bool is_known(const Explanation& source) {
    return source.facts.unavailable.empty() && source.verdicts.steps.size() == source.facts.steps.size();
}

}  // namespace

std::optional<Interval> DirectionPair::time_ratio() const {
    if (forward.empty() || backward.empty() || !forward.time_us || !backward.time_us) return std::nullopt;
    const Interval ratio = quotient(*backward.time_us, *forward.time_us);
    return ratio.value > 0 ? std::optional(ratio) : std::nullopt;
}

std::optional<double> DirectionPair::flop_ratio() const {
    if (forward.empty() || backward.empty() || forward.flops <= 0 || backward.flops <= 0) return std::nullopt;
    return backward.flops / forward.flops;
}

std::optional<double> DirectionPair::byte_ratio() const {
    if (forward.empty() || backward.empty() || forward.bytes <= 0 || forward.is_counted != backward.is_counted)
        return std::nullopt;
    return backward.bytes / forward.bytes;
}

ForwardSteps::ForwardSteps(const Point& point) {
    for (const StepResult& step : point.steps) {
        if (step.direction != Direction::fwd || step.is_recomputed()) continue;
        by_layer_.emplace(step.layer, &step);
        by_op_.emplace(fmt::format("{}:{}", step.layer, step.op), &step);
        for (const std::string& label : step.absorbs) {
            by_op_.emplace(label, &step);
            by_layer_.emplace(layer_of(label), &step);
        }
    }
}

const StepResult* ForwardSteps::of(const StepResult& backward) const {
    if (backward.forward) {
        const auto named = by_op_.find(*backward.forward);
        return named != by_op_.end() ? named->second : nullptr;
    }
    // A result from before steps named their forward.
    if (const auto op = by_op_.find(fmt::format("{}:{}", backward.layer, backward.op)); op != by_op_.end())
        return op->second;
    // A sum of gradients is of no op of its kind, but of one of its layer.
    const auto layer = by_layer_.find(backward.layer);
    return layer != by_layer_.end() ? layer->second : nullptr;
}

Directions forward_against_backward(const Explanation* forward, const Explanation& backward) {
    Directions directions;
    const Point& point = *backward.facts.point;
    const auto is_backward = [](const StepResult& step) { return step.direction != Direction::fwd; };
    if (std::ranges::none_of(point.steps, is_backward)) return directions;
    if (!is_known(backward)) {
        directions.unavailable = backward.facts.unavailable;
        if (directions.unavailable.empty()) directions.unavailable = "its steps were not timed";
        return directions;
    }
    const bool has_forward = forward != nullptr && is_known(*forward);
    const Explanation& of_forward = has_forward ? *forward : backward;
    const Point& forward_point = *of_forward.facts.point;
    directions.is_one_point = has_forward && &forward_point == &point;
    directions.is_gpu = point.backend() == "cuda";
    if (has_forward) directions.forward_point = &forward_point;
    const ForwardSteps forwards(forward_point);
    DirectionPair& whole = directions.whole;
    const std::vector<StepPart> parts = parts_of(point, forwards);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const StepResult& step = point.steps[i];
        directions.time_us += step.device_us().value_or(0);
        if (parts[i] == StepPart::loss) directions.loss.steps.push_back(i);
        if (parts[i] == StepPart::optimizer) directions.optimizer.steps.push_back(i);
        if (parts[i] != StepPart::backward) continue;
        const StepResult* of = forwards.of(step);
        whole.backward.steps.push_back(i);
        DirectionPair& kind = pair_called(directions.by_op, step.op);
        kind.backward.steps.push_back(i);
        if (of != nullptr && of->op != step.op) add_once(kind.forward_within, of->op);
        pair_called(directions.by_layer, layer_group(layer_forward(step, of))).backward.steps.push_back(i);
    }
    if (has_forward) {
        const std::vector<StepPart> its_parts = directions.is_one_point ? parts : parts_of(forward_point, forwards);
        for (std::size_t i = 0; i < its_parts.size(); ++i) {
            if (its_parts[i] != StepPart::forward) continue;
            const StepResult& step = forward_point.steps[i];
            for (DirectionPair* pair : {&whole, &pair_called(directions.by_op, step.op),
                                        &pair_called(directions.by_layer, layer_group(step.layer))})
                pair->forward.steps.push_back(i);
        }
    }
    for (DirectionPair& kind : directions.by_op)
        if (!kind.forward.empty()) kind.forward_within.clear();
    directions.loss = summed(std::move(directions.loss), "loss", backward);
    directions.optimizer = summed(std::move(directions.optimizer), "optimizer", backward);
    sum(whole, of_forward, backward);
    whole.products.clear();
    sum_and_sort(directions.by_op, of_forward, backward);
    sum_and_sort(directions.by_layer, of_forward, backward);
    for (DirectionPair& layer : directions.by_layer) layer.products.clear();
    directions.findings = direction_findings(directions, backward.breakdown.roofs_unavailable.empty());
    return directions;
}

}  // namespace kbench
