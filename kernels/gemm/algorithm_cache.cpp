// The file that remembers measured GEMM algorithms. Works without a device: an algorithm is 64 opaque bytes here.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "kernels/gemm/cublaslt.h"

namespace kbench::cuda {
namespace {

using nlohmann::json;

constexpr int file_format = 1;

json to_json(const GemmAlgorithm& algorithm) {
    json words = json::array();
    for (const std::uint64_t word : algorithm.algorithm.data) words.push_back(fmt::format("{:016x}", word));
    return {{"algo", std::move(words)},
            {"workspace", algorithm.workspace_bytes},
            {"median_us", algorithm.median_us},
            {"candidates", algorithm.candidates}};
}

/// Throws std::exception for anything to_json would not write.
GemmAlgorithm from_json(const json& entry) {
    GemmAlgorithm algorithm{};
    const json& words = entry.at("algo");
    if (words.size() != std::size(algorithm.algorithm.data))
        throw std::invalid_argument(
            fmt::format("an algorithm has {} words, not {}", std::size(algorithm.algorithm.data), words.size()));
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& text = words[i].get_ref<const std::string&>();
        std::size_t read = 0;
        algorithm.algorithm.data[i] = std::stoull(text, &read, 16);
        if (read != text.size()) throw std::invalid_argument(fmt::format("'{}' is not a hexadecimal word", text));
    }
    algorithm.workspace_bytes = entry.at("workspace").get<std::size_t>();
    algorithm.median_us = entry.at("median_us").get<double>();
    algorithm.candidates = entry.at("candidates").get<int>();
    algorithm.from_cache = true;
    return algorithm;
}

}  // namespace

std::string algorithm_key(const GemmProblem& p, const std::string& device_name, std::size_t cublaslt_version) {
    return fmt::format("{}|{}|{} m{} n{} k{} {}{}{}{}{}{} out {} ld {} {} {} batch {} strides {} {} {}", device_name,
                       cublaslt_version, name(p.precision), p.m, p.n, p.k,
                       fmt::format("{}{}", p.x_transposed ? "xT" : "", p.weight_transposed ? "wT" : "w"),
                       p.bias ? "+bias" : "", p.gelu ? "+gelu" : "", p.keeps_argument ? "+argument" : "",
                       p.gelu_gradient ? "+dgelu" : "", p.bias_gradient ? "+dbias" : "", name(p.out_type), p.ld_x,
                       p.ld_w, p.ld_out, p.batch, p.stride_x, p.stride_w, p.stride_out);
}

struct AlgorithmCache::State {
    std::filesystem::path file;
    bool retune;
    std::map<std::string, GemmAlgorithm> entries;
    std::set<std::string> measured;  ///< keys stored by this process
    std::vector<std::string> warnings;

    void warn(std::string line) {
        if (std::find(warnings.begin(), warnings.end(), line) == warnings.end()) warnings.push_back(std::move(line));
    }

    /// Takes over what the file holds, except for keys that this process has measured itself.
    void merge_file() {
        std::error_code error;
        if (!std::filesystem::exists(file, error)) return;
        std::map<std::string, GemmAlgorithm> found;
        try {
            std::ifstream stream(file);
            if (!stream) throw std::runtime_error("cannot be opened");
            const json content = json::parse(stream);
            if (const json& format = content.at("format"); format != file_format)
                throw std::runtime_error(fmt::format("has format {}, not {}", format.dump(), file_format));
            for (const auto& [key, entry] : content.at("entries").items()) found[key] = from_json(entry);
        } catch (const std::exception& problem) {
            warn(fmt::format("GEMM algorithm cache {} ignored: {}", file.string(), problem.what()));
            return;
        }
        for (auto& [key, algorithm] : found)
            if (!measured.contains(key)) entries[key] = algorithm;
    }

    /// Other processes see the old file or the new one, never a part.
    void write_file() {
        json content = {{"format", file_format}, {"entries", json::object()}};
        for (const auto& [key, algorithm] : entries) content["entries"][key] = to_json(algorithm);
        std::filesystem::path temporary = file;
        temporary += fmt::format(".{}.tmp", getpid());
        std::error_code error;
        if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
        bool written = false;
        {
            std::ofstream stream(temporary);
            stream << content.dump(1) << '\n';
            stream.close();
            written = stream.good();
        }
        if (written) std::filesystem::rename(temporary, file, error);
        if (!written || error) {
            warn(fmt::format("GEMM algorithm cache {} cannot be written: algorithms are measured again next time",
                             file.string()));
            std::filesystem::remove(temporary, error);
        }
    }
};

AlgorithmCache::AlgorithmCache(std::filesystem::path file, bool retune)
    : state_(std::make_unique<State>(State{std::move(file), retune, {}, {}, {}})) {
    state_->merge_file();
}

AlgorithmCache::~AlgorithmCache() = default;

const GemmAlgorithm* AlgorithmCache::find(const std::string& key) const {
    if (state_->retune && !state_->measured.contains(key)) return nullptr;
    const auto entry = state_->entries.find(key);
    return entry == state_->entries.end() ? nullptr : &entry->second;
}

void AlgorithmCache::store(const std::string& key, const GemmAlgorithm& algorithm) {
    state_->measured.insert(key);
    state_->entries[key] = algorithm;
    state_->merge_file();  // what another process has written since
    state_->write_file();
}

const std::vector<std::string>& AlgorithmCache::warnings() const { return state_->warnings; }

}  // namespace kbench::cuda
