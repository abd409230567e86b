// Sentences of a program, each from a sum of its records and a threshold.
#include "analysis/explain/program_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/explain/executed.h"
#include "analysis/machine/waiting_kernels.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

constexpr double noteworthy_copies = 0.10;     ///< a part of the iteration
constexpr double noteworthy_precision = 0.02;  ///< a part of the kernels' time
constexpr std::size_t most_named = 3;

/// "0.42 ms of 1.04 ms (40 %)": both in the unit of the whole.
std::string part_text(double us, double whole_us) {
    const TimeUnit unit = time_unit(whole_us * 1e-3);
    const double per_us = unit.per_ms * 1e-3;
    const int decimals = decimals_for(whole_us * per_us, 3);
    return fmt::format("{:.{}f} {} of {:.{}f} {} ({})", us * per_us, decimals, unit.name, whole_us * per_us, decimals,
                       unit.name, percent(us / whole_us));
}

/// Whether iterations were timed without records.
bool is_bare(const PointFacts& facts) { return facts.point->program->bare_ms > 0; }

/// A sum by name, of a copy or of a layer's precision.
struct NamedTime {
    std::string name;
    double us = 0;
    double bytes = 0;
};

/// The longest, joined: at most most_named of them.
template <class Text>
std::string longest_text(std::vector<NamedTime> parts, Text text) {
    std::ranges::stable_sort(parts, std::greater{}, &NamedTime::us);
    if (parts.size() > most_named) parts.resize(most_named);
    return joined(parts, ", ", text);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool is_with_host(const KernelResult& copy) { return has(copy.name, "HtoD") || has(copy.name, "DtoH"); }

std::string copies_sentence(const PointFacts& facts, const TimeBreakdown& breakdown) {
    const double us = breakdown.total[Line::copies];
    if (us < noteworthy_copies * breakdown.end_to_end_us) return "";
    std::vector<NamedTime> copies;
    double with_host_us = 0, pageable_us = 0;
    for (const StepFacts& step : facts.steps)
        for (const KernelResult& kernel : step.step->kernels) {
            if (!kernel.moved_bytes) continue;
            NamedTime& copy = entry(copies, &NamedTime::name, kernel.name);
            copy.us += kernel.time_us;
            copy.bytes += static_cast<double>(*kernel.moved_bytes);
            if (is_with_host(kernel)) with_host_us += kernel.time_us;
            if (has(kernel.name, "pageable")) pageable_us += kernel.time_us;
        }
    const std::string which = longest_text(copies, [](const NamedTime& copy) {
        return fmt::format("{} in {} ({})", format_bytes(copy.bytes), format_ms(copy.us * 1e-3), copy.name);
    });
    return fmt::format(
        "{} take {}: {}{}.", with_host_us > 0.5 * us ? "Copies between host and device" : "Copies and fills of memory",
        part_text(us, breakdown.end_to_end_us), which,
        pageable_us > 0.5 * us ? "; from pinned memory they would be faster, and could run beside kernels" : "");
}

/// Where the framework tells a product from other work, products alone: norms and losses are in fp32 on purpose.
bool tells_precision(const StepFacts& step, bool has_products) {
    return step.kernels_us > step.copies_us && (!has_products || step.step->matrix_flops > 0);
}

std::string parent_of(const std::string& layer) {
    const std::size_t dot = layer.rfind('.');
    return dot == std::string::npos ? "" : layer.substr(0, dot);
}

/// Work in one precision by layer: "h.3.attn" where all of that module's has it, and "h.*.attn" where more such modules
/// are alike than are named.
class PrecisionPlaces {
  public:
    PrecisionPlaces(const PointFacts& facts, bool has_products, std::string_view precision) : precision_(precision) {
        for (const StepFacts& step : facts.steps)
            if (tells_precision(step, has_products)) steps_.push_back(&step);
    }

    std::string text() const {
        std::vector<NamedTime> places;
        for (const StepFacts* step : steps_)
            if (has_it(*step)) entry(places, &NamedTime::name, place_of(*step->step)).us += step->kernels_us;
        if (places.size() > most_named) {
            std::vector<NamedTime> folded;
            for (const NamedTime& place : places)
                entry(folded, &NamedTime::name, layer_group(place.name)).us += place.us;
            places = std::move(folded);
        }
        const std::size_t others = places.size() - std::min(places.size(), most_named);
        return longest_text(std::move(places), [](const NamedTime& place) { return place.name; }) +
               (others > 0 ? fmt::format(" and {} more", others) : "");
    }

    /// Whether counters show it of each of its steps; else names of kernels do.
    bool is_counted() const {
        return std::ranges::all_of(
            steps_, [&](const StepFacts* step) { return !has_it(*step) || tensor_cores_used(*step->step); });
    }

    bool is_on_plain_cores() const {
        return std::ranges::all_of(steps_, [&](const StepFacts* step) {
            return !has_it(*step) || !tensor_cores_used(*step->step).value_or(true);
        });
    }

  private:
    bool has_it(const StepFacts& step) const { return name(step.step->precision) == precision_; }

    std::string place_of(const StepResult& step) const {
        if (step.layer.empty() || step.layer == step.implementation) return step.implementation;  // no module is known
        const std::string parent = parent_of(step.layer);
        const bool is_whole = !parent.empty() && std::ranges::all_of(steps_, [&](const StepFacts* other) {
            return !other->step->layer.starts_with(parent + ".") || has_it(*other);
        });
        return is_whole ? parent : step.layer;
    }

    std::string_view precision_;
    std::vector<const StepFacts*> steps_;
};

std::string precision_sentence(const PointFacts& facts, const TimeBreakdown& breakdown) {
    const bool has_products =
        std::ranges::any_of(facts.steps, [](const StepFacts& step) { return step.step->matrix_flops > 0; });
    std::vector<NamedTime> by_precision;
    double all_us = 0;
    for (const StepFacts& step : facts.steps) {
        if (!tells_precision(step, has_products)) continue;
        entry(by_precision, &NamedTime::name, std::string(name(step.step->precision))).us += step.kernels_us;
        all_us += step.kernels_us;
    }
    if (by_precision.size() < 2) return "";
    const NamedTime most = *std::ranges::max_element(by_precision, {}, &NamedTime::us);
    std::vector<std::string> others;
    for (const NamedTime& other : by_precision) {
        if (other.name == most.name || other.us < noteworthy_precision * all_us) continue;
        const PrecisionPlaces places(facts, has_products, other.name);
        others.push_back(fmt::format("{}{} in {}: {} of the time ({})", other.name,
                                     places.is_on_plain_cores() ? " without tensor cores" : "", places.text(),
                                     percent(other.us / breakdown.end_to_end_us),
                                     places.is_counted() ? "by counters" : "by the kernels' names"));
    }
    if (others.empty()) return "";
    return fmt::format("{}, where {} of the {}' time is {}.", joined(others, "; "), percent(most.us / all_us),
                       has_products ? "products" : "kernels", most.name);
}

std::string waiting_sentence(const PointFacts& facts, const TimeBreakdown& breakdown) {
    std::vector<NamedTime> kernels;
    for (const StepFacts& step : facts.steps)
        for (const KernelResult& kernel : step.step->kernels)
            if (waits_for_other_ranks(kernel.name))
                entry(kernels, &NamedTime::name, kernel.short_name).us += kernel.time_us;
    if (kernels.empty()) return "";
    const std::string which = longest_text(kernels, [](const NamedTime& kernel) {
        return fmt::format("{} in {}", kernel.name, format_ms(kernel.us * 1e-3));
    });
    return fmt::format(
        "Kernels that wait for other ranks take {}, the wait included: {}. They are timed only, not counted.",
        part_text(waiting_us(facts), breakdown.end_to_end_us), which);
}

std::string records_sentence(const PointFacts& facts, const TimeBreakdown& breakdown) {
    const double bare_us = breakdown.end_to_end_us, more_us = facts.records_us;
    if (!is_bare(facts))
        return "No iteration was timed without records: all times are those with records, which may be longer.";
    if (std::abs(more_us) <= closing_tolerance * bare_us) return "";
    const std::string longer = percent(std::abs(more_us) / bare_us);
    if (more_us < 0)
        return fmt::format("With records an iteration is {} shorter: parts of the time may be off by as much.", longer);
    const Interval waits = host_wait_us(facts);
    if (waits.high >= host_wait_share * bare_us)
        return fmt::format(
            "With records an iteration is {} longer, as they slow the host's calls: without them waits for the host are "
            "between {} and {} (estimated).",
            longer, format_ms(waits.low * 1e-3), format_ms(waits.high * 1e-3));
    return fmt::format("With records an iteration is {} longer: parts of the time are by as much.", longer);
}

}  // namespace

Interval host_wait_us(const PointFacts& facts) {
    if (!facts.point->program) return {};
    double us = 0;
    for (const StepFacts& step : facts.steps) us += step.host_wait_us;
    const double without = std::max(0.0, us - std::max(0.0, facts.records_us));
    return {without, without, us};
}

double waiting_us(const PointFacts& facts) {
    double us = 0;
    for (const StepFacts& step : facts.steps)
        for (const KernelResult& kernel : step.step->kernels)
            if (waits_for_other_ranks(kernel.name)) us += kernel.time_us;
    return us;
}

std::string host_wait_text(const PointFacts& facts) {
    const Interval waits = host_wait_us(facts);
    const bool is_exact = waits.high - waits.low <= closing_tolerance * facts.end_to_end_us;
    return fmt::format("the GPU waits for the host for {}{}", is_exact ? "" : "at least ",
                       part_text(is_exact ? waits.high : waits.low, facts.end_to_end_us));
}

std::string quicker_launches(const ProgramRun& program) {
    return fmt::format("CUDA graphs, {}larger batches or a faster host",
                       program.named || has(program.command, "python") ? "torch.compile, " : "");
}

namespace {

bool is_always_launch_bound(const PointFacts& facts) {
    const std::vector<double>& samples_ms = facts.point->end_to_end->latency.samples_ms;
    if (samples_ms.empty() || !is_bare(facts)) return false;
    const double shortest_us = 1e3 * std::ranges::min(samples_ms);
    const double waits_us = host_wait_us(facts).low - (facts.end_to_end_us - shortest_us);
    return waits_us >= host_wait_share * shortest_us;
}

}  // namespace

ProgramFindings program_findings(const PointFacts& facts, const TimeBreakdown& breakdown) {
    ProgramFindings found;
    if (!facts.point->program || !breakdown.unavailable.empty() || !(breakdown.end_to_end_us > 0)) return found;
    const double whole_us = breakdown.end_to_end_us;
    const Interval waits = host_wait_us(facts);
    found.is_launch_bound = waits.low >= host_wait_share * whole_us;
    found.is_always_launch_bound = found.is_launch_bound && is_always_launch_bound(facts);
    if (found.is_launch_bound)
        found.host_wait = fmt::format("launch-bound: {}; {} would shorten that, another GPU hardly.",
                                      host_wait_text(facts), quicker_launches(*facts.point->program));
    else if (waits.high >= host_wait_share * whole_us)
        found.host_wait = fmt::format(
            "Whether it is launch-bound is unknown: the GPU waits for the host for between {} and {} of the time, "
            "as records add up to {} to that.",
            percent(waits.low / whole_us), percent(std::min(1.0, waits.high / whole_us)),
            format_ms(facts.records_us * 1e-3));
    for (std::string& sentence : std::vector{waiting_sentence(facts, breakdown), copies_sentence(facts, breakdown),
                                             precision_sentence(facts, breakdown), records_sentence(facts, breakdown)})
        if (!sentence.empty()) found.sentences.push_back(std::move(sentence));
    return found;
}

}  // namespace kbench
