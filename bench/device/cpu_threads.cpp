// What the variables mean: OpenMP 5.2, chapter 21.
#include "bench/device/cpu_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <sstream>

#include "kbench/error.h"
#include "kbench/records.h"
#include "models/base/format.h"

namespace kbench {
namespace {

std::string trimmed(const std::string& text) {
    const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
    const auto first = std::find_if_not(text.begin(), text.end(), is_space);
    const auto last = std::find_if_not(text.rbegin(), std::make_reverse_iterator(first), is_space).base();
    return {first, last};
}

bool is_set(const char* variable) { return variable != nullptr && !trimmed(variable).empty(); }

bool is_true(const char* variable) {
    std::string text = trimmed(variable);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text == "true" || text == "1";
}

/// As many as use up no more than the quota; at least one.
int threads_within(const CpuQuota& quota) {
    constexpr double rounding = 1e-6;
    return static_cast<int>(std::clamp(std::floor(quota.cpus + rounding), 1.0, 1e6));
}

void refuse_too_many(const ThreadSurroundings& found) {
    if (found.asked > found.cpus)
        throw UsageError(fmt::format("--threads {}: this process may use {}; must be 1 to {}", found.asked,
                                     plural(found.cpus, "CPU"), found.cpus));
    if (found.asked > found.thread_limit)
        throw UsageError(fmt::format("--threads {}: OMP_THREAD_LIMIT={} lets no more start; ask for fewer or unset it",
                                     found.asked, found.thread_limit));
}

/// Nothing where the variable decides nothing.
std::optional<ThreadChoice> by_variable(const ThreadSurroundings& found, std::vector<std::string>& warnings) {
    if (!is_set(found.omp_num_threads)) return std::nullopt;
    const std::string text = trimmed(found.omp_num_threads);
    const std::optional<int> wanted = first_of_thread_list(text);
    if (!wanted) {
        warnings.push_back(fmt::format("OMP_NUM_THREADS='{}' is ignored: must be a whole number from 1", text));
        return std::nullopt;
    }
    if (*wanted > found.cpus)
        warnings.push_back(fmt::format("OMP_NUM_THREADS={}: this process may use {}, so {}", text,
                                       plural(found.cpus, "CPU"), plural(found.cpus, "thread") + " run"));
    return ThreadChoice{std::min(*wanted, found.cpus), "OMP_NUM_THREADS=" + text, {}};
}

ThreadChoice chosen(const ThreadSurroundings& found, std::vector<std::string>& warnings) {
    if (found.asked > 0) return {found.asked, "--threads", {}};
    if (const auto choice = by_variable(found, warnings)) return *choice;
    if (found.quota && threads_within(*found.quota) < found.cores) return {threads_within(*found.quota), "quota", {}};
    return {found.cores, std::string(threads_from_cores), {}};
}

/// What a quota below the threads does to times.
std::string quota_warning(const CpuQuota& quota, int threads) {
    const double stopped = 1 - quota.cpus / threads;
    const int within = threads_within(quota);
    return fmt::format(
        "a control group allows {:.3g} CPUs of time and {} would use {}: the kernel stops {} for up to {:.0f} % of each {:.0f} ms, so times are of the quota and not of the CPU; {}",
        quota.cpus, plural(threads, "thread"), threads, threads == 1 ? "it" : "them", 100 * stopped,
        1e3 * quota.period_s,
        within < threads ? fmt::format("take --threads {} or raise the quota", within) : "raise the quota");
}

}  // namespace

std::optional<int> first_of_thread_list(const std::string& text) {
    std::optional<int> first;
    std::istringstream stream(text);
    if (text.empty() || text.back() == ',') return std::nullopt;
    for (std::string part; std::getline(stream, part, ',');) {
        const std::string one = trimmed(part);
        int value = 0;
        const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), value);
        if (error != std::errc{} || end != one.data() + one.size() || value < 1) return std::nullopt;
        if (!first) first = value;
    }
    return first;
}

ThreadChoice choose_threads(const ThreadSurroundings& found) {
    refuse_too_many(found);
    std::vector<std::string> warnings;
    ThreadChoice choice = chosen(found, warnings);
    if (choice.threads > found.thread_limit) {
        choice.threads = found.thread_limit;
        choice.from = fmt::format("OMP_THREAD_LIMIT={}", found.thread_limit);
    }
    if (is_set(found.omp_dynamic) && is_true(found.omp_dynamic))
        warnings.push_back(fmt::format("OMP_DYNAMIC={} is not followed: {} all the time", trimmed(found.omp_dynamic),
                                       plural(choice.threads, "thread") + (choice.threads == 1 ? " runs" : " run")));
    for (const auto& [variable, text] : found.of_blas)
        if (is_set(text) && first_of_thread_list(trimmed(text)) != choice.threads)
            warnings.push_back(fmt::format("{}={} is not followed: products take {} too", variable, trimmed(text),
                                           plural(choice.threads, "thread")));
    if (found.quota && found.quota->cpus < choice.threads)
        warnings.push_back(quota_warning(*found.quota, choice.threads));
    choice.warnings = std::move(warnings);
    return choice;
}

}  // namespace kbench
