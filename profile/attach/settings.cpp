// Settings from the environment. Whoever sets them is `kbench attach`, so that what cannot be read means: not attached.
#include "profile/attach/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "profile/rank.h"

namespace kbench::attach {
namespace {

/// What is set for this process's rank goes before what is set for all.
std::string_view variable(const char* name) {
    static const std::optional<std::int64_t> rank = rank_of_process();
    const char* value = rank ? std::getenv(fmt::format("{}_{}", name, *rank).c_str()) : nullptr;
    if (value == nullptr) value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::uint64_t number(const char* name) {
    const std::string_view text = variable(name);
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::vector<std::string> list(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t comma = text.find(',');
        words.emplace_back(text.substr(0, comma));
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return words;
}

std::optional<Settings> read() {
    const std::string_view purpose = variable("KBENCH_ATTACH_PURPOSE");
    const std::string_view directory = variable("KBENCH_ATTACH_DIR");
    for (std::size_t i = 0; i < purpose_names.size() && !directory.empty(); ++i) {
        if (purpose_names[i] != purpose) continue;
        Settings found;
        found.purpose = static_cast<Purpose>(i);
        found.directory = directory;
        found.call = variable("KBENCH_ATTACH_CALL");
        found.call_first = number("KBENCH_ATTACH_CALL_FIRST");
        found.call_period = number("KBENCH_ATTACH_CALL_PERIOD");
        found.first_launch = number("KBENCH_ATTACH_FIRST");
        found.period = number("KBENCH_ATTACH_PERIOD");
        found.block = number("KBENCH_ATTACH_BLOCK");
        found.counters = list(variable("KBENCH_ATTACH_COUNTERS"));
        found.ranges = number("KBENCH_ATTACH_RANGES");
        found.ranges_of_calls = number("KBENCH_ATTACH_RANGES_OF_CALLS") != 0;
        found.waiting = list(variable("KBENCH_ATTACH_WAITING"));
        found.most_pass_seconds = number("KBENCH_ATTACH_MOST_PASS_SECONDS");
        return found;
    }
    return std::nullopt;
}

}  // namespace

const std::optional<Settings>& settings() {
    static const std::optional<Settings> known = read();
    return known;
}

}  // namespace kbench::attach
