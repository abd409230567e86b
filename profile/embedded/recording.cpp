// Writes prof.json.
#include "profile/embedded/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "profile/embedded/interval.h"
#include "profile/rank.h"

namespace kbench::embedded {
namespace {

namespace fs = std::filesystem;

/// Bytes of the UTF-8 character that `text` begins with; 0 where there is none.
std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xc2 && first < 0xe0 ? 2
                             : (first & 0xf0) == 0xe0      ? 3
                             : (first & 0xf8) == 0xf0      ? 4
                                                           : 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool is_no_character = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90) || first > 0xf4;
    return is_overlong || is_no_character ? 0 : size;
}

std::string json_string(std::string_view text) {
    std::string json = "\"";
    while (!text.empty()) {
        const std::size_t size = character_size(text);
        const char c = text.front();
        if (size == 0) {
            json += "\xef\xbf\xbd";  // U+FFFD
        } else if (c == '"' || c == '\\') {
            json += {'\\', c};
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
            json += escaped;
        } else {
            json += text.substr(0, size);
        }
        text.remove_prefix(std::max<std::size_t>(size, 1));
    }
    return json + "\"";
}

/// Whatever the program's locale.
std::string number(double value) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 7);
    return error == std::errc() ? std::string(text, end) : "null";
}

std::string numbers(const std::vector<double>& values) {
    std::string json = "[";
    for (const double value : values) json += (json.size() > 1 ? ", " : "") + number(value);
    return json + "]";
}

/// `"NAME": mean`, and its interval and samples as PREFIXci_low, PREFIXci_high and PREFIXn.
std::string mean_members(const std::string& name, const std::string& prefix, const std::vector<double>& samples) {
    const Mean mean = mean_of(samples);
    const auto end = [&](double sign) {
        return mean.half_width ? number(mean.value + sign * *mean.half_width) : std::string("null");
    };
    return json_string(name) + ": " + (mean.n > 0 ? number(mean.value) : "null") + ", " +
           json_string(prefix + "ci_low") + ": " + end(-1) + ", " + json_string(prefix + "ci_high") + ": " + end(1) +
           ", " + json_string(prefix + "n") + ": " + std::to_string(mean.n);
}

std::string scope_json(const RecordedScope& scope) {
    const Mean offset = mean_of(scope.offset_ms);
    return "{\"label\": " + json_string(scope.label) + ", \"occurrence\": " + std::to_string(scope.occurrence) +
           ", \"in_graph\": " + (scope.in_graph ? "true" : "false") +
           ", \"start_index\": " + std::to_string(scope.start_index) +
           ", \"end_index\": " + (scope.end_index ? std::to_string(*scope.end_index) : "null") + ",\n         " +
           mean_members("avg_measured_time_ms", "", scope.measured_ms) +
           ",\n         \"avg_iter_start_to_event_start_time_ms\": " + (offset.n > 0 ? number(offset.value) : "null") +
           ",\n         \"measured_times_ms\": " + numbers(scope.measured_ms) + "}";
}

/// Texts with a comma and a line's end between.
std::string joined(const std::vector<std::string>& parts, const std::string& indent) {
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "\n" : ",\n") + indent + part;
    return text;
}

std::string device_json(const RecordedDevice& device) {
    std::vector<std::string> notes;
    for (const std::string& note : device.notes) notes.push_back(json_string(note));
    return "{\"id\": " + std::to_string(device.id) + ", \"name\": " + json_string(device.name) + ",\n     " +
           mean_members("avg_iter_time_ms", "iter_", device.iteration_ms) +
           ",\n     \"iter_times_ms\": " + numbers(device.iteration_ms) + ",\n     \"notes\": [" +
           joined(notes, "       ") + "]}";
}

/// By device, then by stream, as each first occurred.
std::string timeline_json(const std::vector<RecordedDevice>& devices) {
    std::vector<std::string> of_devices;
    for (const RecordedDevice& device : devices) {
        std::vector<std::string> streams;
        for (const RecordedScope& scope : device.scopes)
            if (std::ranges::find(streams, scope.stream) == streams.end()) streams.push_back(scope.stream);
        std::vector<std::string> of_streams;
        for (const std::string& stream : streams) {
            std::vector<std::string> scopes;
            for (const RecordedScope& scope : device.scopes)
                if (scope.stream == stream) scopes.push_back(scope_json(scope));
            of_streams.push_back(json_string(stream) + ": [" + joined(scopes, "        ") + "]");
        }
        of_devices.push_back(json_string(std::to_string(device.id)) + ": {" + joined(of_streams, "      ") + "}");
    }
    return "{" + joined(of_devices, "    ") + "}";
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// As the kernel has them: the library does not see main's.
std::string arguments_json() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string json = "[";
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\0', at), text.size());
        json += (at > 0 ? ", " : "") + json_string(std::string_view(text).substr(at, end - at));
        at = end + 1;
    }
    return json + "]";
}

[[noreturn]] void fail(const fs::path& path) {
    throw std::runtime_error("cannot write " + path.string() + ": " + std::strerror(errno));
}

void write_all(int descriptor, std::string_view text, const fs::path& path) {
    while (!text.empty()) {
        const ssize_t written = write(descriptor, text.data(), text.size());
        if (written < 0 && errno != EINTR) fail(path);
        if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace

std::string recording_json(const Recording& recording) {
    const std::optional<std::int64_t> rank = rank_of_process();
    // The iteration as a whole takes as long as that of the slowest device.
    std::vector<std::string> devices;
    const RecordedDevice* slowest = nullptr;
    for (const RecordedDevice& device : recording.devices) {
        devices.push_back(device_json(device));
        if (slowest == nullptr || mean_of(device.iteration_ms).value > mean_of(slowest->iteration_ms).value)
            slowest = &device;
    }
    return "{\n  \"format\": \"kbench.scopes/1\",\n  \"host_name\": " + json_string(host_name()) +
           ",\n  \"rank\": " + (rank ? std::to_string(*rank) : "null") + ",\n  \"pid\": " + std::to_string(getpid()) +
           ",\n  \"arguments\": " + arguments_json() +
           ",\n  \"iterations\": {\"first\": " + std::to_string(recording.first) +
           ", \"end\": " + (recording.end ? std::to_string(*recording.end) : "null") + "}" +
           ",\n  \"complete\": " + (recording.is_complete ? "true" : "false") + ",\n  " +
           mean_members("avg_iter_time_ms", "iter_",
                        slowest == nullptr ? std::vector<double>() : slowest->iteration_ms) +
           ",\n  \"devices\": [" + joined(devices, "    ") + "],\n  \"timeline\": " + timeline_json(recording.devices) +
           "\n}\n";
}

std::string write_recording(const Recording& recording, const std::string& folder) {
    const std::optional<std::int64_t> rank = rank_of_process();
    const fs::path path = fs::path(folder) / (rank ? "prof." + std::to_string(*rank) + ".json" : "prof.json");
    if (!folder.empty()) {
        std::error_code error;
        fs::create_directories(folder, error);
        if (error) throw std::runtime_error("cannot make the folder " + folder + ": " + error.message());
    }
    if (fs::exists(fs::symlink_status(path)) && !fs::is_regular_file(fs::symlink_status(path)))
        throw std::runtime_error("cannot write " + path.string() + ": something stands there that is no file");
    fs::path temporary = path;
    temporary.replace_filename("." + path.filename().string() + "." + std::to_string(getpid()) + ".tmp");
    const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(path);
    try {
        write_all(descriptor, recording_json(recording), path);
        const bool is_flushed = fsync(descriptor) == 0;
        if ((close(descriptor) != 0) || !is_flushed) fail(path);
        if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path);
    } catch (...) {
        unlink(temporary.c_str());
        throw;
    }
    return path.string();
}

}  // namespace kbench::embedded
