// Finds a checkpoint's files by the names that transformers' save_pretrained gives them.
#include "bench/plan/data/checkpoint_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "bench/plan/data/other_formats.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view single_name = "model.safetensors", index_ending = ".safetensors.index.json";

bool is_there(const fs::path& path) {
    std::error_code none;
    return fs::exists(path, none);
}

/// Parses, and refuses a tensor that stands twice: JSON would silently keep the last.
json parse_index(const std::string& text, const std::string& file) {
    if (text.find_first_not_of(" \t\r\n") == std::string::npos || text[text.find_first_not_of(" \t\r\n")] != '{')
        if (const std::string other = other_format(std::string_view(text).substr(0, recognised_bytes)); !other.empty())
            throw UsageError(fmt::format("{}: {}", file, other));
    std::set<std::string> names;
    std::string twice, section;
    const auto callback = [&](int depth, json::parse_event_t event, json& parsed) {
        if (event != json::parse_event_t::key) return true;
        if (depth == 1) section = parsed.get<std::string>();
        if (depth == 2 && section == "weight_map" && !names.insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    check_json_text(text, file);
    json index;
    try {
        index = json::parse(text, callback);
    } catch (const json::exception& error) {
        throw UsageError(fmt::format("{}: index is not JSON: {}", file, parser_message(error)));
    }
    if (!twice.empty()) throw UsageError(fmt::format("{}: {}: stands twice in the weight_map", file, twice));
    if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object() ||
        index["weight_map"].empty())
        throw UsageError(
            fmt::format("{}: has no weight_map; an index of shards has one, of each tensor's file by its name", file));
    return index;
}

/// In the folder of the index, or below.
bool stays_inside(const fs::path& shard) {
    return !shard.empty() && shard.is_relative() &&
           std::ranges::none_of(shard, [](const fs::path& part) { return part == ".."; });
}

CheckpointFiles of_index(const fs::path& path) { return parse_checkpoint_index(read_whole_file(path), path); }

/// What "model-00001-of-00002.safetensors" says.
struct Shard {
    std::string stem;
    int number, of;
};
std::optional<Shard> shard_name(const fs::path& path) {
    const std::string name = path.stem();
    const std::size_t of = name.rfind("-of-"), dash = of == std::string::npos ? of : name.rfind('-', of - 1);
    if (of == std::string::npos || of == 0 || dash == std::string::npos) return {};
    const auto number = [&](std::size_t begin, std::size_t end) {
        int value = -1;
        const auto parsed = std::from_chars(name.data() + begin, name.data() + end, value);
        return parsed.ptr == name.data() + end ? value : -1;
    };
    const Shard shard{name.substr(0, dash), number(dash + 1, of), number(of + 4, name.size())};
    return shard.number > 0 && shard.of > 0 ? std::optional(shard) : std::nullopt;
}

/// Whether these are all the shards of one checkpoint, whose index was not copied with them.
bool is_complete(const std::vector<fs::path>& files) {
    std::set<int> numbers;
    std::set<std::pair<std::string, int>> sets;
    for (const fs::path& file : files) {
        const auto shard = shard_name(file);
        if (!shard) return false;
        numbers.insert(shard->number);
        sets.emplace(shard->stem, shard->of);
    }
    return sets.size() == 1 && static_cast<int>(files.size()) == sets.begin()->second && *numbers.begin() == 1 &&
           *numbers.rbegin() == sets.begin()->second;
}

CheckpointFiles of_folder(const fs::path& folder) {
    std::vector<fs::path> files, indices;
    std::string pickle;
    std::error_code unreadable;
    for (fs::directory_iterator entry(folder, unreadable), end; entry != end; entry.increment(unreadable)) {
        const fs::path& path = entry->path();
        const std::string name = path.filename(), extension = path.extension();
        if (extension == ".safetensors") files.push_back(path);
        if (name.ends_with(index_ending)) indices.push_back(path);
        if (extension == ".bin" || extension == ".pt" || extension == ".pth") pickle = name;
    }
    if (unreadable) throw UsageError(fmt::format("{}: cannot be read: {}", folder.string(), unreadable.message()));
    std::ranges::sort(files);
    if (std::ranges::find(files, folder / single_name) != files.end()) return {{}, {folder / single_name}, {}};
    const auto usual = std::ranges::find(indices, folder / "model.safetensors.index.json");
    if (usual != indices.end()) return of_index(*usual);
    if (indices.size() == 1) return of_index(indices.front());
    if (indices.empty() && (files.size() == 1 || (!files.empty() && is_complete(files)))) return {{}, files, {}};
    if (files.empty())
        throw UsageError(fmt::format(
            "{}: a folder without a .safetensors file{}", folder.string(),
            pickle.empty()
                ? ""
                : fmt::format(
                      "; {} is a pickle, which is not read; save the model as safetensors: model.save_pretrained(DIR, safe_serialization=True)",
                      pickle)));
    std::vector<std::string> names;
    for (const fs::path& file : indices.empty() ? files : indices) names.push_back(file.filename());
    if (names.size() > 8) names.resize(8);
    throw UsageError(fmt::format("{}: a folder of several {}, none of them {}; name the one to read: {}",
                                 folder.string(), indices.empty() ? ".safetensors files without an index" : "indices",
                                 indices.empty() ? single_name : "model.safetensors.index.json",
                                 fmt::join(names, ", ")));
}

}  // namespace

CheckpointFiles parse_checkpoint_index(const std::string& text, const fs::path& path) {
    CheckpointFiles checkpoint{path, {}, {}};
    const json index = parse_index(text, path.string());
    const auto wrong = [&](const std::string& tensor, const std::string& what) {
        return UsageError(fmt::format("{}: {}: {}", path.string(), tensor, what));
    };
    std::set<fs::path> files;
    for (const auto& [tensor, value] : index["weight_map"].items()) {
        if (!value.is_string()) throw wrong(tensor, fmt::format("its file is {}; it should be a name", value.dump()));
        const fs::path shard = value.get<std::string>();
        if (!stays_inside(shard))
            throw wrong(tensor,
                        fmt::format("'{}' lies outside the index's folder; shards lie beside it", shard.string()));
        const std::string extension = shard.extension();
        if (extension == ".bin" || extension == ".pt" || extension == ".pth")
            throw wrong(
                tensor,
                fmt::format(
                    "'{}' is a pickle of PyTorch's, which is not read; save the model as safetensors: model.save_pretrained(DIR, safe_serialization=True)",
                    shard.string()));
        const fs::path file = path.parent_path() / shard;
        if (files.insert(file).second && !is_there(file))
            throw wrong(tensor, fmt::format("its shard {} is not there", file.string()));
        checkpoint.file_of[tensor] = file;
    }
    checkpoint.files.assign(files.begin(), files.end());
    return checkpoint;
}

CheckpointFiles checkpoint_files(const fs::path& path) {
    std::error_code none;
    if (fs::is_directory(path, none)) return of_folder(path);
    if (path.extension() == ".json") return of_index(path);
    return {{}, {path}, {}};
}

std::vector<fs::path> files_of_checkpoint(const fs::path& path) {
    try {
        CheckpointFiles checkpoint = checkpoint_files(path);
        if (!checkpoint.index.empty()) checkpoint.files.insert(checkpoint.files.begin(), checkpoint.index);
        return std::move(checkpoint.files);
    } catch (const UsageError&) {
        return {path};
    }
}

std::string checkpoint_name(const fs::path& path) {
    std::error_code none;
    const fs::path whole = fs::absolute(path, none).lexically_normal();
    return (whole.has_filename() ? whole.filename() : whole.parent_path().filename()).string();
}

}  // namespace kbench
