// What is fuzzed: every reader of files, and the parsers of command lines. A target takes any bytes: it may refuse them
// with an Error, and do nothing else that a user would call a crash.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace kbench::fuzz {

struct Target {
    std::string_view name;  ///< its corpus is tests/fuzz/corpus/NAME
    void (*run)(std::string_view input);
};
/// By name.
std::span<const Target> targets();

/// A file in memory that holds `content` until the next call: for readers that want a path.
std::filesystem::path as_file(std::string_view content);

void result(std::string_view input);
void config(std::string_view input);
void machine(std::string_view input);
void program(std::string_view input);
void safetensors(std::string_view input);
void schedule(std::string_view input);
void scopes(std::string_view input);
void index(std::string_view input);
void npy(std::string_view input);
void tokens(std::string_view input);
void shapes(std::string_view input);
void metrics(std::string_view input);
void arguments(std::string_view input);

}  // namespace kbench::fuzz
