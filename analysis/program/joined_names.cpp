#include "analysis/program/joined_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kbench/error.h"
#include "models/base/format.h"

namespace kbench {
namespace {

/// Iterations of more activities are compared from their first ones only: turning them takes time with their square.
constexpr std::size_t most_turned = 20'000;

std::span<const Symbol> first_of(const std::vector<Symbol>& symbols, const Iterations& iterations) {
    return std::span(symbols).subspan(iterations.begin, iterations.period);
}

Iterations iterations_of(const ProgramFile& file, std::span<const Symbol> symbols, const std::string& from,
                         const Spans& calls) {
    return from.empty() ? find_iterations(file, symbols, calls) : iterations_from(symbols, calls);
}

}  // namespace

Joined join_names(const ProgramFile& records, const ProgramFile* names, const std::string& from) {
    Symbols symbols;
    const std::vector<Symbol> plain = symbols.of(records);
    const auto calls_of = [&](const ProgramFile& file) {
        return from.empty() ? calls_of_model(file) : calls_of_range(file, from);
    };
    const Spans own_calls = calls_of(records);
    const Spans named_calls = names ? calls_of(*names) : Spans{};
    if (!from.empty() && own_calls.empty() && named_calls.empty())
        throw UsageError(
            one_line(fmt::format("--from '{}': no kernel was launched within a range of that name", from)));
    // A range that only the hook's run has says nothing of the records' iterations until both are joined.
    const auto alone = [&] {
        return own_calls.empty() ? find_iterations(records, plain, {}) : iterations_of(records, plain, from, own_calls);
    };
    if (names == nullptr || names->activities.empty()) return {.found = alone()};
    const std::vector<Symbol> named = symbols.of(*names);
    const Iterations with_names = iterations_of(*names, named, from, named_calls);
    if (with_names.unavailable.empty()) {
        if (std::optional<Iterations> found = iterations_like(plain, first_of(named, with_names)))
            return {.found = std::move(*found), .named = names, .named_begin = with_names.begin};
    } else if (plain == named) {
        return {.found = with_names, .named = names, .named_begin = with_names.begin};
    }
    Iterations found = alone();
    const std::span<const Symbol> iteration = first_of(plain, found);
    const OtherWork differs =
        first_difference(symbols, {iteration.begin(), iteration.end()}, first_of(named, with_names))
            .value_or(OtherWork{.place = 1, .one = "the same", .other = "the same"});
    std::string why = fmt::format(
        "the run with names launched other kernels, so its names are left out: kernel {} of an iteration is {} without "
        "them and {} with them",
        differs.place, differs.one, differs.other);
    return {.found = std::move(found), .refused = std::move(why)};
}

/// The first one is turned so that most of its begin is that of the other.
std::optional<OtherWork> first_difference(const Symbols& symbols, std::vector<Symbol> one,
                                          std::span<const Symbol> other) {
    std::pair<std::size_t, std::size_t> best;  // common begin, and by how much it is turned
    const std::size_t turns = one.size() <= most_turned ? one.size() : 1;
    for (std::size_t turn = 0; turn < turns && best.first < other.size(); ++turn) {
        std::size_t common = 0;
        while (common < std::min(one.size(), other.size()) && one[(turn + common) % one.size()] == other[common])
            ++common;
        if (common > best.first) best = {common, turn};
    }
    std::ranges::rotate(one, one.begin() + static_cast<std::ptrdiff_t>(best.second));
    const auto [a, b] = std::ranges::mismatch(one, other);
    if (a == one.end() && b == other.end()) return std::nullopt;
    const auto text = [&](auto at, auto end) { return at == end ? std::string("nothing more") : symbols.text(*at); };
    return OtherWork{.place = static_cast<std::size_t>(a - one.begin()) + 1,
                     .one = text(a, one.end()),
                     .other = text(b, other.end())};
}

}  // namespace kbench
