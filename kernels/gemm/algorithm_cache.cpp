// The file that remembers measured GEMM algorithms. It needs no device: an algorithm is 64 opaque bytes here.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "kernels/gemm/choice_file.h"
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

/// Throws std::exception for anything that to_json would not write.
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

std::string algorithm_key(const GemmProblem& p, const std::string& device_name, std::size_t cublaslt_version,
                          int some_multiprocessors) {
    return fmt::format("{}{}|{}|{} m{} n{} k{} {}{}{}{}{}{} out {} ld {} {} {} batch {} strides {} {} {}", device_name,
                       some_multiprocessors > 0 ? fmt::format(" {} SMs", some_multiprocessors) : "", cublaslt_version,
                       name(p.precision), p.m, p.n, p.k,
                       fmt::format("{}{}", p.x_transposed ? "xT" : "", p.weight_transposed ? "wT" : "w"),
                       p.bias ? "+bias" : "", p.gelu ? "+gelu" : "", p.keeps_argument ? "+argument" : "",
                       p.gelu_gradient ? "+dgelu" : "", p.bias_gradient ? "+dbias" : "", name(p.out_type), p.ld_x,
                       p.ld_w, p.ld_out, p.batch, p.stride_x, p.stride_w, p.stride_out);
}

struct AlgorithmCache::State {
    ChoiceFile<GemmAlgorithm> file;
};

AlgorithmCache::AlgorithmCache(std::filesystem::path file, bool retune)
    : state_(std::make_unique<State>(
          State{{std::move(file), retune, {"GEMM algorithm cache", file_format, to_json, from_json}}})) {}

AlgorithmCache::~AlgorithmCache() = default;

const GemmAlgorithm* AlgorithmCache::find(const std::string& key) const { return state_->file.find(key); }

void AlgorithmCache::store(const std::string& key, const GemmAlgorithm& algorithm) {
    state_->file.store(key, algorithm);
}

const std::vector<std::string>& AlgorithmCache::warnings() const { return state_->file.warnings(); }

}  // namespace kbench::cuda
