// kbench completion: what shells and man know of the commands, from their tables of options.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "analysis/machine/machine.h"
#include "bench/command/command.h"
#include "bench/device/console.h"
#include "bench/measure/machine/environment.h"
#include "kbench/axes.h"
#include "kbench/error.h"
#include "models/base/lists.h"
#include "models/base/nearest.h"
#include "models/base/values.h"
#include "models/ops/table.h"
#include "models/registry.h"

namespace kbench {
namespace {

/// The words that an option takes, with spaces between; none where it takes something else.
std::string values_of(const std::string& option) {
    if (option == "--model" || option == "--shapes-of") return joined(builtin_models(), " ", &ModelSpec::name);
    if (option == "--machine" || option == "--what-if") return joined(machines(), " ", &MachineFile::id);
    if (option == "--op") return joined(op_kinds(), " ", [](const OpKind* kind) { return kind->name; });
    if (option == "--backend") return "auto cuda cpu";
    for (const Axis& axis : axes()) {
        if (option != fmt::format("--{}", axis.name) || axis.words.empty()) continue;
        const std::string words = fmt::format("{}", fmt::join(axis.offered_words(), " "));
        return axis.sweeps ? words + " all" : words;
    }
    return "";
}

/// "-v", "--verbose".
std::vector<std::string> spellings(const HelpRow& row) { return split(std::string(row.name)); }

std::vector<HelpRow> options_of(const Command& command) {
    return command.options == nullptr ? std::vector<HelpRow>{} : command.options();
}

/// What may follow a command: its options and words.
std::string follows(const Command& command) {
    std::vector<std::string> all{"--help"};
    for (const HelpRow& row : options_of(command))
        for (std::string& name : spellings(row)) all.push_back(std::move(name));
    if (command.words != nullptr) std::ranges::copy(command.words(), std::back_inserter(all));
    return fmt::format("{}", fmt::join(all, " "));
}

std::string command_names() { return joined(commands(), " ", &Command::name); }

/// For bash and zsh, which reads bash's.
std::string bash() {
    std::vector<std::string> with_value, with_words;
    std::string cases, choices;
    for (const Command& command : commands()) {
        choices +=
            fmt::format("    {}) words='{}' ;;\n", command.name == "run" ? "run|-*" : command.name, follows(command));
        for (const HelpRow& row : options_of(command)) {
            const std::string name = spellings(row).back(), words = values_of(name);
            std::vector<std::string>& known = words.empty() ? with_value : with_words;
            if (row.value.empty() || std::ranges::count(known, name) > 0) continue;
            known.push_back(name);
            if (!words.empty()) cases += fmt::format("    {}) words='{}' ;;\n", name, words);
        }
    }
    // What takes no words of a list takes a file or what only its user knows: the shell's own completion.
    return fmt::format(R"(# Completion of kbench for bash, written by `kbench completion`.
_kbench() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    COMPREPLY=()
    case $before in
{}    {}) return ;;
    *) case ${{COMP_WORDS[1]}} in
{}    esac ;;
    esac
    if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then words='{} help'; fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _kbench kbench
)",
                       cases, fmt::join(with_value, "|"), choices, command_names());
}

/// zsh reads its file when the first completion is asked for, and that one has still to be made.
std::string zsh() {
    return "#compdef kbench\nautoload -U +X bashcompinit && bashcompinit\n" + bash() +
           "if [[ ${funcstack[1]} == _kbench ]]; then _bash_complete -o default -F _kbench; fi\n";
}

/// A text in single quotes, as fish reads it.
std::string in_quotes(std::string_view text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return result + "'";
}

std::string fish() {
    std::string text = "# Completion of kbench for fish, written by `kbench completion`.\n", others;
    for (const Command& command : commands())
        if (command.name != "run") others += fmt::format(" {}", command.name);
    for (const Command& command : commands()) {
        const std::string here = command.name == "run" ? fmt::format("'not __fish_seen_subcommand_from{}'", others)
                                                       : fmt::format("'__fish_seen_subcommand_from {}'", command.name);
        text += fmt::format("complete -c kbench -n __fish_use_subcommand -a {} -d {}\n", command.name,
                            in_quotes(command.what));
        if (command.words != nullptr)
            text += fmt::format("complete -c kbench -n {} -x -a '{}'\n", here, fmt::join(command.words(), " "));
        for (const HelpRow& row : options_of(command)) {
            text += fmt::format("complete -c kbench -n {}", here);
            for (const std::string& name : spellings(row))
                text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            const std::string words = values_of(spellings(row).back());
            if (!row.value.empty()) text += words.empty() ? " -r" : fmt::format(" -x -a '{}'", words);
            text += fmt::format(" -d {}\n", in_quotes(row.help));
        }
    }
    return text;
}

/// A line of text for troff.
std::string troff(std::string_view text) {
    std::string result = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    return result;
}

std::string man() {
    std::string text = fmt::format(
        ".TH KBENCH 1 \"\" \"{}\"\n.SH NAME\nkbench \\- why a model takes this long on this machine\n.SH SYNOPSIS\n"
        ".B kbench\n[COMMAND] [OPTIONS]\n.SH COMMANDS\n",
        version_text());
    for (const Command& command : commands())
        text += fmt::format(".TP\n.B {}\n{}\n", command.name, troff(command.what));
    for (const Command& command : commands()) {
        const std::vector<HelpRow> rows = options_of(command);
        if (rows.empty()) continue;
        text += fmt::format(".SH OPTIONS OF {}\n", command.name);
        for (const HelpRow& row : rows)
            text += fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", troff(row.name), row.value, troff(row.help));
    }
    return text +
           ".SH EXIT STATUS\n0 done; 1 a verification or measurement failed; 2 bad usage or input; "
           "3 device missing.\n";
}

struct Writer {
    std::string_view name;
    std::string (*write)();
};
constexpr Writer writers[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}, {"man", man}};

}  // namespace

std::vector<std::string> completion_words() {
    std::vector<std::string> words;
    for (const Writer& writer : writers) words.emplace_back(writer.name);
    return words;
}

int completion_command(const std::vector<std::string>& arguments, const std::string&) {
    const std::string asked = fmt::format("{}", fmt::join(arguments, " "));
    if (asked == "--help" || asked == "-h") {
        put("kbench completion FOR: {}\n", fmt::join(completion_words(), ", "));
        return 0;
    }
    const auto* writer = std::ranges::find(writers, asked, &Writer::name);
    if (writer == std::end(writers))
        throw UsageError(fmt::format("completion for '{}': {}", asked, nearest_name(asked, completion_words())));
    put_text(writer->write());
    return 0;
}

}  // namespace kbench
