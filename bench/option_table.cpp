// What every table of options needs; see option_table.h.
#include "bench/option_table.h"

#include <sstream>

namespace kbench {

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

std::string word(std::string_view option, const std::string& text, std::span<const std::string_view> allowed) {
    std::string list;
    for (const std::string_view candidate : allowed) {
        if (candidate == text) return text;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", candidate);
    }
    throw UsageError(fmt::format("{} '{}': must be one of {}", option, text, list));
}

std::string parse_with(CLI::App& app, const std::vector<std::string>& arguments) {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    try {
        app.parse(reversed);
    } catch (const CLI::CallForHelp&) {
        return app.help();
    } catch (const CLI::ParseError& error) {
        std::string line = error.what();
        if (const std::size_t end = line.find('\n'); end != std::string::npos) line.resize(end);
        throw UsageError(fmt::format("{}; `{} --help` lists the options", line, app.get_name()));
    }
    return {};
}

}  // namespace kbench
