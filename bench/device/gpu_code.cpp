// Reads CMake's list of architectures.
#include "bench/device/gpu_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <vector>

namespace kbench {
namespace {

/// "90a-real" is SASS, "90-virtual" PTX, "90" both.
void add_item(std::string_view item, std::vector<GpuCode>& codes) {
    const std::string_view kind = item.substr(std::min(item.size(), item.find('-')));
    int number = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    if (error != std::errc{} || number < 10) return;
    GpuCode code{number / 10, number % 10, {}, true};
    if (const char* letter = end; letter != item.data() + item.size() && (*letter == 'a' || *letter == 'f'))
        code.suffix = *letter;
    if (kind != "-virtual") codes.push_back(code);
    code.machine = false;
    if (kind != "-real") codes.push_back(code);
}

std::vector<GpuCode> codes_of(std::string_view architectures) {
    std::vector<GpuCode> codes;
    while (!architectures.empty()) {
        const std::size_t end = std::min(architectures.find_first_of(",; "), architectures.size());
        add_item(architectures.substr(0, end), codes);
        architectures.remove_prefix(std::min(end + 1, architectures.size()));
    }
    return codes;
}

bool runs_on(const GpuCode& code, int major, int minor) {
    const bool same = code.major == major && code.minor == minor;
    if (code.suffix == "a") return same;
    if (code.machine || code.suffix == "f") return code.major == major && code.minor <= minor;
    return std::tie(code.major, code.minor) <= std::tie(major, minor);
}

}  // namespace

std::string GpuCode::text() const {
    return fmt::format("{}_{}{}{}", machine ? "SASS of sm" : "PTX of compute", major, minor, suffix);
}

std::optional<GpuCode> code_for(std::string_view architectures, int major, int minor) {
    std::optional<GpuCode> best;
    for (const GpuCode& code : codes_of(architectures)) {
        if (!runs_on(code, major, minor)) continue;
        const auto rank = [](const GpuCode& c) { return std::tuple(c.machine, c.major, c.minor, !c.suffix.empty()); };
        if (!best || rank(code) > rank(*best)) best = code;
    }
    return best;
}

std::string code_text(std::string_view architectures) {
    std::vector<std::string> names;
    for (const GpuCode& code : codes_of(architectures))
        names.push_back(code.machine ? fmt::format("sm_{}{}{}", code.major, code.minor, code.suffix) : code.text());
    if (names.size() < 2) return names.empty() ? "no GPU" : names.front();
    const std::string last = names.back();
    names.pop_back();
    return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

std::string_view built_architectures() {
#ifdef KBENCH_CUDA_CODE
    return KBENCH_CUDA_CODE;
#else
    return "";
#endif
}

std::string why_no_code(std::string_view architectures, std::string_view name, int major, int minor) {
    if (major < least_compute_capability)
        return fmt::format(
            "{} has compute capability {}.{}, and kbench has no code for it: its kernels need {}.0 (Ampere) or newer",
            name, major, minor, least_compute_capability);
    if (architectures.empty() || code_for(architectures, major, minor)) return "";
    return fmt::format(
        "{} has compute capability {}.{}, and this kbench was built for {}: build it again on this machine, or with -DCMAKE_CUDA_ARCHITECTURES={}{}",
        name, major, minor, code_text(architectures), major, minor);
}

std::string why_not_assumed(std::string_view architectures, int major, int minor, int older_major, int older_minor) {
    const std::optional<GpuCode> code = code_for(architectures, major, minor);
    if (code && code->major == older_major && code->minor == older_minor) return "";
    return fmt::format("compute capability {}.{} can be assumed in a build for {}{}-virtual alone; this one has {}",
                       older_major, older_minor, older_major, older_minor, code_text(architectures));
}

std::string_view tried_on(int major, int minor) {
    if (major == 9 && minor == 0) return "run on H100 and H200";
    return "kbench was never run on a GPU of this compute capability";
}

}  // namespace kbench
