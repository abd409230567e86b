// Spells each option of a run as text; files are recorded by name, size and hash.
#include "bench/measure/sweep/recorded_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "bench/plan/data/checkpoint_files.h"
#include "bench/plan/data/read_file.h"
#include "bench/plan/data/token_file.h"
#include "kbench/error.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

std::string providers_text(const ProviderChoice& choice) {
    std::string text;
    for (const auto& [op, provider] : choice) text += fmt::format("{}{}={}", text.empty() ? "" : ",", op, provider);
    return text.empty() ? "default" : text;
}

/// FNV-1a (Fowler, Noll, Vo), 64 bits: tells files apart, protects from nothing.
std::uint64_t hash_of(const fs::path& path) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char byte : read_whole_file(path)) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    return hash;
}

/// The same for what may be gigabytes: eight bytes at a time in four lanes, 3 GB of a cached file in 0.6 s.
std::uint64_t hash_of_large(const std::vector<fs::path>& paths) {
    constexpr std::size_t lanes = 4, chunk = std::size_t{1} << 20;
    std::array<std::uint64_t, lanes> hash{1, 2, 3, 4};
    std::vector<std::uint64_t> words(chunk / sizeof(std::uint64_t));
    for (const fs::path& path : paths) {
        std::ifstream file(path, std::ios::binary);
        while (file) {
            std::ranges::fill(words, 0);
            file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(chunk));
            if (file.gcount() == 0) break;
            for (std::size_t i = 0; i < words.size(); ++i)
                hash[i % lanes] = (hash[i % lanes] ^ words[i]) * 0x100000001b3u + (hash[i % lanes] >> 29);
        }
    }
    std::uint64_t all = 0xcbf29ce484222325u;
    for (const std::uint64_t lane : hash) all = (all ^ lane) * 0x100000001b3u;
    return all;
}

std::string weights_text(const std::optional<fs::path>& file) {
    if (!file) return "random";
    const std::string name = checkpoint_name(*file);
    const std::vector<fs::path> files = files_of_checkpoint(*file);
    std::uintmax_t bytes = 0;
    for (const fs::path& one : files) {
        std::error_code unreadable;  // whoever loads them says so
        bytes += fs::file_size(one, unreadable);
        if (unreadable) return name;
    }
    return fmt::format("{}, {} bytes, hash {:016x}", name, bytes, hash_of_large(files));
}

/// "random", or the files; one alone as it always was.
std::string inputs_text(const FilesByName& files) {
    std::string text;
    for (const auto& [name, file] : files) {
        text += fmt::format("{}{}{}", text.empty() ? "" : "; ", files.size() > 1 ? fmt::format("{}: ", name) : "",
                            file.filename().string());
        try {
            text += fmt::format(", FNV-1a {:016x}", hash_of(token_file(file).path));
        } catch (const UsageError&) {  // whoever loads it says so
        }
    }
    return text.empty() ? "random" : text;
}

std::string counters_text(const CounterRequest& request) {
    std::vector<std::string> all = request.sets;
    all.insert(all.end(), request.metrics.begin(), request.metrics.end());
    return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ","));
}

}  // namespace

std::map<std::string, std::string> recorded_options(const RunOptions& options, const Device& device) {
    const SamplerOptions& sampler = options.sampler;
    std::map<std::string, std::string> recorded = {
        {"model", options.model.description},
        {"backend", std::string(name(device.kind()))},
        {"provider", providers_text(options.providers)},
        {"weights", weights_text(options.weights)},
        {"tokens", inputs_text(options.inputs)},
        {"seed", std::to_string(options.seed)},
        {"verify", options.verify ? "yes" : "no"},
        {"counters", counters_text(options.counters)},
        {"time_budget_s", fmt::format("{}", sampler.time_budget_s)},
        {"warm_up_s", fmt::format("{}", sampler.warm_up_s)},
        {"min_time_s", fmt::format("{}", sampler.min_time_s)},
        {"min_samples", fmt::format("{}", sampler.min_samples)},
        {"min_independent", fmt::format("{}", sampler.min_independent)},
        {"max_samples", fmt::format("{}", sampler.max_samples)},
        {"target_relative_ci", fmt::format("{}", sampler.target_relative_ci)},
        {"step_runs", fmt::format("{}", options.step_runs)},
        {"activity_runs", fmt::format("{}", options.activity_runs)},
        {"activity_warm_up_s", fmt::format("{}", options.activity_warm_up_s)},
        {"marginal_s", fmt::format("{}", options.marginal_s)},
        {"graph_clock_s", fmt::format("{}", options.graph_clock_s)},
        {"sm_scaling_s", fmt::format("{}", options.sm_scaling_s)},
        {"size_scaling_s", fmt::format("{}", options.size_scaling_s)},
        {"theft_s", fmt::format("{}", options.theft_s)},
        {"logits_repeats", fmt::format("{}", options.output_repeats)}};
    if (const std::optional<GpuInfo>& gpu = device.info().gpu; gpu && gpu->multiprocessors_of_device)
        recorded["sms"] = fmt::format("{} of {}", gpu->multiprocessors, *gpu->multiprocessors_of_device);
    if (options.deterministic) recorded["deterministic"] = "yes";  // not there in all other results
    for (const Axis& axis : axes())                                // the others are the points'
        if (axis.order == 0)
            for (const AxisValue& value : asked_values(axis, options, options.of_model()))
                recorded[std::string(axis.name)] = text_of(value);
    return recorded;
}

}  // namespace kbench
