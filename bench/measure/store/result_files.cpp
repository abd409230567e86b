// Finds, reads and writes result.json and result.json.gz in directories.
#include "bench/measure/store/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "analysis/result/merge.h"
#include "analysis/result/result_json.h"
#include "kbench/error.h"
#include "models/base/gzip.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view plain_name = "result.json", compressed_name = "result.json.gz";

/// Appends the files of results at or below `directory`. A result.json speaks for its directory and its points; what
/// was measured below it in directories of their own belongs to it no more.
void collect(const fs::path& directory, std::vector<fs::path>& files) {
    if (const fs::path file = result_file_in(directory); !file.empty()) {
        files.push_back(file);
        return;
    }
    const std::vector<fs::path> points = point_files(directory / points_folder);
    files.insert(files.end(), points.begin(), points.end());
    std::vector<fs::path> below;
    for (const auto& entry : fs::directory_iterator(directory))
        if (entry.is_directory()) below.push_back(entry.path());
    std::ranges::sort(below);
    for (const fs::path& path : below)
        if (path.filename() != points_folder || points.empty()) collect(path, files);
}

}  // namespace

bool is_result_name(std::string_view name) { return name == plain_name || name == compressed_name; }

fs::path result_file_in(const fs::path& directory) {
    const fs::path plain = directory / plain_name, compressed = directory / compressed_name;
    const bool has_plain = fs::exists(plain), has_compressed = fs::exists(compressed);
    if (has_plain && has_compressed)
        throw UsageError(fmt::format("{}: holds both {} and {}; name the one to read, or move one away",
                                     directory.string(), plain_name, compressed_name));
    if (has_plain) return plain;
    return has_compressed ? compressed : fs::path();
}

ResultFile read_result_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    if (!file || !(text << file.rdbuf()))
        throw UsageError(fmt::format(
            "{}: cannot be read; name a result.json, plain or .gz, or the directory that holds one", path.string()));
    ResultFile read{path.string(), parse_result(text.str(), path.string())};
    refuse_repeated_points(read);
    return read;
}

std::vector<fs::path> point_files(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(folder, missing)) {
        const std::string name = entry.path().filename().string();
        // `kbench report` of a point's own file writes its trace beside it.
        if (entry.path().extension() == ".json" && !name.starts_with('.') && name != "trace.json")
            files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

std::vector<ResultFile> read_results(const std::string& name) {
    if (!fs::is_directory(name)) return {read_result_file(name)};
    std::vector<fs::path> files;
    try {
        collect(name, files);
    } catch (const fs::filesystem_error& error) {
        throw UsageError(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    }
    if (files.empty())
        throw UsageError(
            fmt::format("{}: holds no result.json and no finished points, nor does any directory in it", name));
    std::vector<ResultFile> results;
    for (const fs::path& file : files) results.push_back(read_result_file(file));
    return results;
}

ResultFile read_result(const std::string& name) {
    std::vector<ResultFile> files = read_results(name);
    if (files.size() == 1) return std::move(files.front());
    return {(fs::path(name) / "result.json").string(), merge_results(files)};
}

void write_result(const fs::path& directory, const Result& result, bool compressed) {
    const std::string text = to_text(result);
    write_file_atomically(directory / (compressed ? compressed_name : plain_name), compressed ? gzip(text) : text);
    fs::remove(directory / (compressed ? plain_name : compressed_name));  // a resumed run may have written it
}

}  // namespace kbench
