// Reads and writes prof.schedule. Standard C++ alone: a user's program loads this.
#include "profile/schedule.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

#include "kbench/error.h"

namespace kbench::embedded {
namespace {

constexpr std::int64_t most_iterations = 1'000'000'000'000, most_repeats = 1'000'000;
constexpr std::size_t most_scopes = 10'000;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Foreign text for a message of one line.
std::string shown(std::string_view text) {
    constexpr std::size_t most = 60;
    std::string line(text.substr(0, most));
    std::ranges::replace_if(line, is_control, ' ');
    return "'" + line + (text.size() > most ? "..." : "") + "'";
}

void set_then(Schedule& schedule, std::string_view text, const std::string& where) {
    if (text != "stop" && text != "go on")
        throw UsageError(where + ": 'then' is " + shown(text) + "; it must be stop or go on");
    schedule.stops = text == "stop";
}

struct Line {
    std::string_view name;
    void (*read)(Schedule& schedule, std::string_view text, const std::string& where);
    bool repeats = false;
};
constexpr Line lines[] = {{"iterations", set_iterations},
                          {"then", set_then},
                          {"output", set_output},
                          {"repeat", set_repeat},
                          {"scope", add_scope, true}};

}  // namespace

void set_iterations(Schedule& schedule, std::string_view text, const std::string& where) {
    const std::size_t colon = text.find(':');
    const std::optional<std::int64_t> first = whole_number(text.substr(0, colon));
    const bool has_end = colon != text.npos && colon + 1 < text.size();
    const std::optional<std::int64_t> end = has_end ? whole_number(text.substr(colon + 1)) : std::nullopt;
    if (colon == text.npos || !first || has_end != end.has_value() || *first < 0 || *first > most_iterations ||
        (end && *end > most_iterations))
        throw UsageError(where + ": iterations " + shown(text) + " must be A:B, or A: without an end, as in 10:200");
    if (end && *end < *first + 2)
        throw UsageError(where + ": iterations " + shown(text) +
                         " must be at least two: the first shows which scopes there are");
    schedule.first = *first;
    schedule.end = end;
}

void set_repeat(Schedule& schedule, std::string_view text, const std::string& where) {
    const std::optional<std::int64_t> repeat = whole_number(text);
    if (!repeat || *repeat < 1 || *repeat > most_repeats)
        throw UsageError(where + ": repeat " + shown(text) + " must be a whole number from 1 to " +
                         std::to_string(most_repeats));
    schedule.repeat = *repeat;
}

void set_output(Schedule& schedule, std::string_view text, const std::string& where) {
    if (text.empty() || text != trimmed(text) || std::ranges::any_of(text, is_control))
        throw UsageError(where + ": 'output' must name a folder, as in 'output profile'");
    schedule.output = text;
}

void add_scope(Schedule& schedule, std::string_view text, const std::string& where) {
    ScheduledScope scope;
    constexpr std::string_view before_start = " start ";
    if (const std::size_t at = text.rfind(before_start); at != text.npos) {
        const std::string_view number = trimmed(text.substr(at + before_start.size()));
        const std::optional<std::int64_t> start = whole_number(number);
        if (!start || *start < 0 || *start > most_iterations)
            throw UsageError(where + ": start " + shown(number) + " must be the number of an iteration");
        scope.start = *start;
        text = trimmed(text.substr(0, at));
    }
    if (text.empty()) throw UsageError(where + ": 'scope' must name a label; '*' stands for any");
    if (std::ranges::any_of(text, is_control))
        throw UsageError(where + ": scope " + shown(text) + " has a control character; '?' stands for it");
    if (schedule.scopes.size() == most_scopes)
        throw UsageError(where + ": more than " + std::to_string(most_scopes) + " scopes; '*' stands for any text");
    scope.glob = text;
    schedule.scopes.push_back(std::move(scope));
}

Schedule parse_schedule(std::string_view text, const std::string& path) {
    if (text.size() > longest_schedule)
        throw UsageError(path + ": is larger than " + std::to_string(longest_schedule) + " bytes: no schedule");
    Schedule schedule;
    bool is_given[std::size(lines)] = {};
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = trimmed(text.substr(0, end));
        text = end == text.npos ? std::string_view() : text.substr(end + 1);
        if (line.empty() || line.front() == '#') continue;
        const std::string where = path + ":" + std::to_string(number);
        const std::string_view word = line.substr(0, std::min(line.find(' '), line.find('\t')));
        const Line* const known = std::ranges::find(lines, word, &Line::name);
        if (known == std::end(lines))
            throw UsageError(where + ": " + shown(word) +
                             " is unknown; a line begins with iterations, then, output, repeat or scope");
        bool& given = is_given[known - lines];
        if (given && !known->repeats) throw UsageError(where + ": a second line '" + std::string(word) + "'");
        given = true;
        known->read(schedule, trimmed(line.substr(word.size())), where);
    }
    if (schedule.scopes.empty()) throw UsageError(path + ": names no scope; the line 'scope *' takes all");
    return schedule;
}

std::string schedule_text(const Schedule& schedule) {
    std::string text = "iterations " + std::to_string(schedule.first) + ":";
    if (schedule.end) text += std::to_string(*schedule.end);
    text += "\nrepeat " + std::to_string(schedule.repeat) + "\nthen " + (schedule.stops ? "stop" : "go on") + "\n";
    if (!schedule.output.empty()) text += "output " + schedule.output + "\n";
    for (const ScheduledScope& scope : schedule.scopes)
        text += "scope " + scope.glob + (scope.start > 0 ? " start " + std::to_string(scope.start) : "") + "\n";
    return text;
}

std::optional<std::size_t> Schedule::row(std::string_view label) const {
    const auto found =
        std::ranges::find_if(scopes, [&](const ScheduledScope& scope) { return matches(scope.glob, label); });
    if (found == scopes.end()) return std::nullopt;
    return static_cast<std::size_t>(found - scopes.begin());
}

bool matches(std::string_view glob, std::string_view label) {
    // Where the last * stands, and how much of the label it takes: one more whenever what follows does not fit.
    std::size_t g = 0, l = 0, star = glob.npos, taken = 0;
    while (l < label.size()) {
        const bool is_escaped = g + 1 < glob.size() && glob[g] == '\\';
        if (g < glob.size() && glob[g] == '*') {
            star = g++;
            taken = l;
        } else if (is_escaped ? glob[g + 1] == label[l] : g < glob.size() && (glob[g] == '?' || glob[g] == label[l])) {
            g += is_escaped ? 2 : 1;
            ++l;
        } else if (star != glob.npos) {
            g = star + 1;
            l = ++taken;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == '*') ++g;
    return g == glob.size();
}

std::string glob_of(std::string_view label) {
    constexpr std::string_view start = " start ";
    std::string glob;
    for (std::size_t i = 0; i < label.size(); ++i) {
        const bool is_at_an_end = (i == 0 || i + 1 == label.size()) && is_space(label[i]);
        // Else a reader would take the words behind it for a number of an iteration.
        const bool begins_start = i > 0 && label.substr(i - 1).starts_with(start);
        if (is_control(label[i]) || is_at_an_end) {
            glob += '?';
            continue;
        }
        if (label[i] == '*' || label[i] == '?' || label[i] == '\\' || begins_start) glob += '\\';
        glob += label[i];
    }
    return glob;
}

}  // namespace kbench::embedded
