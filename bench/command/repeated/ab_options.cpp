// The table of options of `kbench ab`.
#include "bench/command/repeated/ab_options.h"

#include <fmt/format.h>
#include <unistd.h>
#include <wordexp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "bench/command/micro_options.h"
#include "bench/command/option_values.h"
#include "bench/command/options.h"
#include "bench/command/repeated/child.h"
#include "bench/command/repeated/printed_metric.h"
#include "kbench/error.h"

namespace kbench {
namespace {

const OptionOf<AbRequest> table[] = {
    {"--a", "WORDS", "this kbench", "what A has of its own: a program, options, or both, as one quoted text",
     [](AbRequest& r, const std::string& text) { r.a = text; }},
    {"--b", "WORDS", "",
     "what B has of its own; '' runs what both have, or A again, which shows what this machine can tell apart",
     [](AbRequest& r, const std::string& text) {
         r.b = text;
         r.b_given = true;
     }},
    {"--metric", "METRIC", "",
     "compares any two commands: wall, the time each takes, or the last number it prints in a regular expression's group",
     [](AbRequest& r, const std::string& text) {
         if (text != ab_wall) PrintedMetric{text};
         r.metric = text;
     }},
    {"--interval", "SHARE", "0.5%", "runs end when the 95 % interval of B/A is within this of its middle",
     [](AbRequest& r, const std::string& text) { r.target = parse_share("--interval", text); }},
    {"--budget", "TIME", "5m", "no pair begins after so long, known or not",
     [](AbRequest& r, const std::string& text) { r.budget_s = seconds("--budget", text, "1s"); }},
    {"--fail-above", "SHARE", "",
     "such as 2% or 0.02: exit code 1 when B takes longer, or is higher, than A by more, for certain",
     [](AbRequest& r, const std::string& text) { r.fail_above = parse_share("--fail-above", text); }},
    {"--fail-below", "SHARE", "", "the same when B is lower than A by more, as rates such as tokens/s should not be",
     [](AbRequest& r, const std::string& text) {
         r.fail_below = parse_share("--fail-below", text);
         if (*r.fail_below >= 1) throw UsageError(fmt::format("--fail-below {}: must be below 100%", text));
     }},
    {"--out", "DIR", "kbench-runs/<time>-ab", "where ab.json goes, and the result of every run of kbench",
     [](AbRequest& r, const std::string& text) { r.out = text; }},
    {"--format", "F", "text", "text, html (a page) or json, which has every pair in full precision",
     [](AbRequest& r, const std::string& text) {
         r.format = word("--format", text, {"text", "html", "json"});
     }},
    quiet_option<AbRequest>(),
};

/// As a shell reads them, without running anything.
std::vector<std::string> words_of(std::string_view option, const std::string& text) {
    wordexp_t words{};
    const int error = wordexp(text.c_str(), &words, WRDE_NOCMD | WRDE_UNDEF);
    std::vector<std::string> list;
    if (error == 0) list.assign(words.we_wordv, words.we_wordv + words.we_wordc);
    if (error == 0 || error == WRDE_NOSPACE) wordfree(&words);
    if (error == WRDE_BADVAL) throw UsageError(fmt::format("{} '{}': names a variable that is not set", option, text));
    if (error != 0)
        throw UsageError(fmt::format(
            "{} '{}': must be words as in a shell, quotes in pairs, without $(...), pipes or redirections, for which there is sh -c",
            option, text));
    return list;
}

/// As a shell reads it as one word.
std::string quoted(const std::string& word) {
    static constexpr std::string_view plain = "_./=:,@%+-";
    if (!word.empty() && std::ranges::all_of(word, [](unsigned char c) {
            return std::isalnum(c) != 0 || plain.find(static_cast<char>(c)) != plain.npos;
        }))
        return word;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
}

bool is_command(const std::string& word) { return word == "run" || word == "micro"; }

AbCommand command_of(std::string_view option, const std::string& own, const std::vector<std::string>& common) {
    AbCommand command;
    std::vector<std::string> words = words_of(option, own);
    if (!words.empty() && !words.front().starts_with("-") && !is_command(words.front())) {
        command.program = words.front();
        words.erase(words.begin());
    }
    std::vector<std::string> all = common;
    if (!words.empty() && is_command(words.front())) {
        if (!all.empty() && is_command(all.front()) && all.front() != words.front())
            throw UsageError(fmt::format("{} '{}': behind -- stands {}", option, own, all.front()));
        if (all.empty() || !is_command(all.front())) all.insert(all.begin(), words.front());
        words.erase(words.begin());
    }
    if (all.empty() || !is_command(all.front())) all.insert(all.begin(), "run");
    all.insert(all.end(), words.begin(), words.end());
    command.arguments = std::move(all);
    return command;
}

/// A side with --metric: its words, then those that both have.
AbCommand any_command_of(std::string_view option, const std::string& own, const std::vector<std::string>& common) {
    std::vector<std::string> words = words_of(option, own);
    words.insert(words.end(), common.begin(), common.end());
    if (words.empty())
        throw UsageError(fmt::format("{} is missing: with --metric each side is a command, such as {} 'python step.py'",
                                     option, option));
    const std::string& program = words.front();
    if (!is_program(program) && program.find('=') != program.npos)
        throw UsageError(fmt::format("{}: '{}' is no program; variables are set by env, as in 'env {} ...'", option,
                                     program, program));
    if (!is_program(program)) throw UsageError(fmt::format("{}: there is no program '{}'", option, program));
    return {words.front(), {words.begin() + 1, words.end()}};
}

/// A mistake is found before anything is measured; another program finds its own in its first run.
void check(std::string_view option, const AbCommand& command) {
    for (const std::string_view given : {"--out", "--resume", "--dry-run", "--format", "--help", "-h"})
        if (command.has(given))
            throw UsageError(
                fmt::format("{}: {} is not for a side of kbench ab, which keeps the runs itself", option, given));
    if (!command.program.empty()) return;
    const std::vector<std::string> options(command.arguments.begin() + 1, command.arguments.end());
    if (command.is_run())
        parse_run(options);
    else
        parse_micro(options);
}

}  // namespace

bool AbCommand::has(std::string_view option) const {
    return std::ranges::any_of(arguments, [&](const std::string& word) {
        return word == option || (word.starts_with(option) && word[option.size()] == '=');
    });
}

std::string AbCommand::text() const {
    std::string line = program.empty() ? "kbench" : quoted(program);
    for (const std::string& word : arguments) line += " " + quoted(word);
    return line;
}

std::span<const OptionOf<AbRequest>> ab_options() { return table; }

std::string ab_options_markdown() { return markdown_of(ab_options()); }

ParsedAb parse_ab(const std::vector<std::string>& arguments) {
    ParsedAb parsed;
    AbRequest& request = parsed.request;
    constexpr CommandText command{
        .name = "kbench ab",
        .what =
            "Runs two sides in turn and says which is faster: kbench ab --b WORDS -- OPTIONS of `kbench run` or `kbench micro` that both have. With --metric the sides are any two commands.",
        .examples = {"kbench ab --b '--provider gemm=native' -- --model gpt2 --quick",
                     "kbench ab --a old/kbench --b new/kbench -- --model gpt2",
                     "kbench ab --a 'python old.py' --b 'python new.py' --metric 'step: ([0-9.]+) ms'"}};
    const auto dashes = std::ranges::find(arguments, "--");
    parsed.help = parse_options(command, ab_options(), request, {arguments.begin(), dashes});
    if (!parsed.help.empty()) return parsed;
    if (!request.b_given)
        throw UsageError("--b is missing: name what B has of its own, such as --b '--provider gemm=native'");
    const std::vector<std::string> common(dashes == arguments.end() ? dashes : dashes + 1, arguments.end());
    if (!request.metric.empty()) {
        request.a_command = any_command_of("--a", request.a, common);
        const bool is_same = common.empty() && words_of("--b", request.b).empty();
        request.b_command = any_command_of("--b", is_same ? request.a : request.b, common);
    }
    if (request.fail_below && (request.metric.empty() || request.metric == ab_wall))
        throw UsageError("--fail-below is for a number that --metric finds: a time should be low");
    if (!request.metric.empty()) return parsed;
    request.a_command = command_of("--a", request.a, common);
    request.b_command = command_of("--b", request.b, common);
    check("--a", request.a_command);
    check("--b", request.b_command);
    return parsed;
}

}  // namespace kbench
