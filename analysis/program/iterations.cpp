// From what repeats to iterations: which activity is the first of one.
#include "analysis/program/iterations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <unordered_map>

#include "analysis/program/frame_text.h"
#include "analysis/program/repetition.h"
#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// The calls of the outermost ranges for which `wanted` holds.
Spans calls_where(const ProgramFile& file, const std::function<bool(const Frame&)>& wanted) {
    std::unordered_map<std::int64_t, bool> is_wanted;          // by text
    std::unordered_map<std::int64_t, std::int64_t> outermost;  // by range: the outermost wanted one around it, or 0
    const auto call_of = [&](std::int64_t range) {
        std::vector<std::int64_t> chain;
        for (std::int64_t id = range; id != 0 && !outermost.contains(id); id = file.range(id)->parent)
            chain.push_back(id);
        const std::int64_t known = chain.empty() ? range : file.range(chain.back())->parent;
        std::int64_t call = known == 0 ? 0 : outermost.at(known);
        for (; !chain.empty(); chain.pop_back()) {
            const auto [text, is_new] = is_wanted.try_emplace(file.range(chain.back())->text, false);
            if (is_new) text->second = wanted(parse_frame(file.text(text->first)));
            if (call == 0 && text->second) call = chain.back();
            outermost[chain.back()] = call;
        }
        return call;
    };
    Spans calls;
    std::unordered_map<std::int64_t, std::size_t> places;
    for (std::size_t i = 0; i < file.activities.size(); ++i) {
        // A graph's kernels keep the range in which they were captured, once for all launches.
        if (file.activities[i].graph_node != 0) continue;
        const std::int64_t call = call_of(file.activities[i].range);
        if (call == 0) continue;
        const auto [place, is_new] = places.try_emplace(call, calls.size());
        if (is_new) calls.emplace_back(i, i);
        calls[place->second].second = i;
    }
    return calls;
}

/// For each activity in [begin, end): how long the host did something else before it called what launched it; nothing
/// where no iteration may begin.
class HostGaps {
  public:
    HostGaps(const ProgramFile& file, std::size_t begin, std::size_t end) : begin_(begin), gaps_(end - begin) {
        std::unordered_map<std::int64_t, const ProgramLaunch*> launches;
        for (const ProgramLaunch& launch : file.launches) launches[launch.correlation] = &launch;
        const ProgramLaunch* before = nullptr;
        // What a program sends to the GPU belongs to what follows, what it reads back to what came before.
        std::size_t first = begin;
        for (std::size_t i = begin; i < end; ++i) {
            const ProgramActivity& activity = file.activities[i];
            const auto launch = launches.find(activity.correlation);
            if (launch == launches.end()) {
                if (activity.what == "DtoH") first = i + 1;
                continue;
            }
            const bool goes_on = i > 0 && file.activities[i - 1].correlation == activity.correlation;
            if (!goes_on) gaps_[first - begin] = before ? launch->second->start_ns - before->end_ns : 0;
            before = launch->second;
            first = i + 1;
        }
    }

    /// The median over all iterations that begin at that place; nothing where one may not.
    std::optional<std::int64_t> at(std::size_t place, std::size_t period) const {
        std::vector<std::int64_t> all;
        for (std::size_t i = place - begin_; i < gaps_.size(); i += period) {
            if (!gaps_[i]) return std::nullopt;
            all.push_back(*gaps_[i]);
        }
        std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
        return all[all.size() / 2];
    }

  private:
    std::size_t begin_;
    std::vector<std::optional<std::int64_t>> gaps_;
};

/// The place within the repetition's first period where iterations begin.
std::size_t first_place(const ProgramFile& file, const Repetition& found, const Spans& calls) {
    const HostGaps gaps(file, found.begin, found.end);
    // Where there are two periods, none is to be lost.
    const std::size_t spare =
        found.count() > 2 ? found.period : std::min(found.period, found.length() % found.period + 1);
    // A loss may be called as a model is: the longest calls are the model's.
    std::vector<std::size_t> lengths(found.period);
    for (const auto& [first, last] : calls)
        if (first >= found.begin && first < found.end) {
            std::size_t& length = lengths[(first - found.begin) % found.period];
            length = std::max(length, last - first + 1);
        }
    const std::size_t longest = std::ranges::max(lengths);
    for (const bool of_calls : {true, false}) {
        std::optional<std::pair<std::int64_t, std::size_t>> best;
        for (std::size_t phase = 0; phase < spare; ++phase) {
            if (of_calls && (longest == 0 || lengths[phase] < longest)) continue;
            const std::size_t place = found.begin + phase;
            const std::optional<std::int64_t> gap = gaps.at(place, found.period);
            if (gap && (!best || *gap > best->first)) best = {*gap, place};
        }
        if (best) return best->second;
    }
    return found.begin;
}

Iterations whole_run(std::size_t activities, std::string why) {
    return {.begin = 0, .period = activities, .count = 1, .unavailable = std::move(why)};
}

}  // namespace

Spans calls_of_model(const ProgramFile& file) {
    return calls_where(file, [](const Frame& frame) { return frame.kind == FrameKind::module && frame.name.empty(); });
}

Spans calls_of_range(const ProgramFile& file, const std::string& name) {
    return calls_where(file, [&](const Frame& frame) { return frame.name == name; });
}

Iterations find_iterations(const ProgramFile& file, std::span<const Symbol> symbols, const Spans& calls) {
    const std::optional<Repetition> found = find_repetition(symbols);
    if (!found)
        return whole_run(symbols.size(),
                         "no sequence of kernels repeats back to back, so the whole run is one iteration");
    for (const auto& [first, last] : calls)
        if (std::min(last + 1, found->end) > std::max(first, found->begin) + found->period)
            return whole_run(symbols.size(),
                             fmt::format("what repeats, {}, lies within one call of the model, so the whole run is one "
                                         "iteration",
                                         plural(static_cast<std::int64_t>(found->period), "kernel")));
    const std::size_t begin = first_place(file, *found, calls);
    return {.begin = begin, .period = found->period, .count = (found->end - begin) / found->period, .unavailable = {}};
}

Iterations iterations_from(std::span<const Symbol> symbols, const Spans& calls) {
    Iterations best;
    for (std::size_t i = 0; i + 1 < calls.size();) {
        const std::size_t begin = calls[i].first, period = calls[i + 1].first - begin;
        Iterations stretch{.begin = begin, .period = period, .count = 1, .unavailable = {}};
        // The last call has no next one that would end it: it is one more where it launches the same.
        std::size_t next = i + 1;
        for (; next < calls.size() && calls[next].first == stretch.at(stretch.count); ++next) {
            const std::size_t at = calls[next].first;
            if (at + period > symbols.size() ||
                !std::ranges::equal(symbols.subspan(at, period), symbols.subspan(begin, period)))
                break;
            ++stretch.count;
        }
        if (stretch.count >= 2 && stretch.count * period > best.count * best.period) best = stretch;
        i = std::max(next - 1, i + 1);
    }
    if (best.count > 0) return best;
    return whole_run(
        symbols.size(),
        "the range that iterations were to begin with launches something else each time, so the whole run is one iteration");
}

namespace {

/// The places behind each `iteration` in `symbols`, in order. Knuth, Morris and Pratt (1977): for each prefix its
/// longest border.
std::vector<std::size_t> ends_of(std::span<const Symbol> symbols, std::span<const Symbol> iteration) {
    const std::size_t period = iteration.size();
    if (period == 0 || symbols.size() < period) return {};
    std::vector<std::size_t> border(period, 0);
    for (std::size_t i = 1, length = 0; i < period; ++i) {
        while (length > 0 && iteration[i] != iteration[length]) length = border[length - 1];
        if (iteration[i] == iteration[length]) ++length;
        border[i] = length;
    }
    std::vector<std::size_t> ends;
    for (std::size_t i = 0, length = 0; i < symbols.size(); ++i) {
        if (length == period) length = border[length - 1];
        while (length > 0 && symbols[i] != iteration[length]) length = border[length - 1];
        if (symbols[i] == iteration[length]) ++length;
        if (length == period) ends.push_back(i + 1);
    }
    return ends;
}

}  // namespace

std::optional<Iterations> iterations_like(std::span<const Symbol> symbols, std::span<const Symbol> iteration) {
    const std::size_t period = iteration.size();
    Iterations best;
    std::vector<std::size_t> count(symbols.size() + 1, 0);  // iterations back to back that end before a place
    for (const std::size_t end : ends_of(symbols, iteration)) {
        count[end] = count[end - period] + 1;
        if (count[end] > best.count)
            best = {.begin = end - count[end] * period, .period = period, .count = count[end], .unavailable = {}};
    }
    return best.count > 0 ? std::optional(best) : std::nullopt;
}

std::vector<std::size_t> iterations_behind_another(std::span<const Symbol> symbols, std::span<const Symbol> iteration) {
    const std::vector<std::size_t> ends = ends_of(symbols, iteration);
    std::vector<std::size_t> begins;
    for (const std::size_t end : ends)
        if (std::ranges::binary_search(ends, end - iteration.size())) begins.push_back(end - iteration.size());
    return begins;
}

IterationRange iteration_range(const std::string& text) {
    const auto refusal = [&] {
        return UsageError(one_line(fmt::format("--iterations '{}': must be A:B with A below B, as in 3:20", text)));
    };
    const std::size_t colon = text.find(':');
    if (colon == text.npos) throw refusal();
    const auto number = [&](std::string_view digits) -> std::optional<std::size_t> {
        if (digits.empty()) return std::nullopt;
        std::size_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc{} || end != digits.data() + digits.size()) throw refusal();
        return value;
    };
    const std::string_view digits = text;
    const IterationRange range{number(digits.substr(0, colon)).value_or(0), number(digits.substr(colon + 1))};
    if (range.end && *range.end <= range.begin) throw refusal();
    return range;
}

std::pair<std::size_t, std::size_t> used_iterations(const Iterations& found, const std::string& asked) {
    if (asked.empty()) return {found.count < 3 ? 0 : 1, found.count};
    const IterationRange range = iteration_range(asked);
    const std::size_t end = range.end.value_or(found.count);
    if (range.begin >= end || end > found.count)
        throw UsageError(one_line(fmt::format("iterations '{}' were asked for, and only {} were found", asked,
                                              plural(found.count, "iteration"))));
    return {range.begin, end};
}

}  // namespace kbench
