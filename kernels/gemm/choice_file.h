// A JSON file that remembers, by key, what was chosen by measuring. Processes share it. It needs no device.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench::cuda {

template <class Choice>
class ChoiceFile {
  public:
    /// The file's title ("GEMM algorithm cache"), its version, and a choice as JSON and back. `read` throws
    /// std::exception for anything that `write` would not write.
    struct Format {
        std::string what;
        int version;
        std::function<nlohmann::json(const Choice&)> write;
        std::function<Choice(const nlohmann::json&)> read;
    };

    /// A file that cannot be read or parsed, or has another version, is ignored with one warning. With `retune`,
    /// a key's choice in the file is ignored, too, until this process stores one.
    ChoiceFile(std::filesystem::path file, bool retune, Format format)
        : file_(std::move(file)), retune_(retune), format_(std::move(format)) {
        merge_file();
    }

    const Choice* find(const std::string& key) const {
        if (retune_ && !measured_.contains(key)) return nullptr;
        const auto entry = entries_.find(key);
        return entry == entries_.end() ? nullptr : &entry->second;
    }
    /// Records the choice and writes the file, whole or not at all. A folder that cannot be written gives a warning.
    void store(const std::string& key, const Choice& choice) {
        measured_.insert(key);
        entries_[key] = choice;
        merge_file();  // other processes may have written since
        write_file();
    }
    /// Warnings so far, one line each.
    const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    void warn(std::string line) {
        if (std::find(warnings_.begin(), warnings_.end(), line) == warnings_.end())
            warnings_.push_back(std::move(line));
    }

    /// Takes over the file's choices, except for keys that this process has measured itself.
    void merge_file() {
        std::error_code error;
        if (!std::filesystem::exists(file_, error)) return;
        std::map<std::string, Choice> found;
        try {
            std::ifstream stream(file_);
            if (!stream) throw std::runtime_error("cannot be opened");
            const nlohmann::json content = nlohmann::json::parse(stream);
            if (const nlohmann::json& version = content.at("format"); version != format_.version)
                throw std::runtime_error(fmt::format("has format {}, not {}", version.dump(), format_.version));
            for (const auto& [key, entry] : content.at("entries").items()) found[key] = format_.read(entry);
        } catch (const std::exception& problem) {
            warn(fmt::format("{} {} ignored: {}", format_.what, file_.string(), problem.what()));
            return;
        }
        for (auto& [key, choice] : found)
            if (!measured_.contains(key)) entries_[key] = choice;
    }

    /// Other processes see the old file or the new one, never a part of it.
    void write_file() {
        nlohmann::json content = {{"format", format_.version}, {"entries", nlohmann::json::object()}};
        for (const auto& [key, choice] : entries_) content["entries"][key] = format_.write(choice);
        std::error_code error;
        if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path(), error);
        try {
            write_file_atomically(file_, content.dump(1) + "\n");
        } catch (const Error& problem) {
            warn(fmt::format("{}: {}: algorithms are measured again next time", format_.what, problem.what()));
        }
    }

    std::filesystem::path file_;
    bool retune_;
    Format format_;
    std::map<std::string, Choice> entries_;
    std::set<std::string> measured_;  ///< keys stored by this process
    std::vector<std::string> warnings_;
};

}  // namespace kbench::cuda
