// What the commands that measure nothing begin with.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "analysis/result_json.h"
#include "bench/command/command.h"
#include "models/error.h"

namespace kbench {

ResultFile read_result(const std::string& name) {
    std::filesystem::path path = name;
    if (std::filesystem::is_directory(path)) path /= "result.json";
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    if (!file || !(text << file.rdbuf()))
        throw UsageError(
            fmt::format("{}: cannot be read; name a result.json or the directory that holds one", path.string()));
    return {path.string(), parse_result(text.str(), path.string())};
}

}  // namespace kbench
