// Lines are collected and written a mebibyte at a time. A child after fork() has a file of its own.
#include "profile/attach/record_file.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profile/attach/now.h"
#include "profile/attach/settings.h"
#include "profile/rank.h"

namespace kbench::attach {
namespace {

constexpr std::size_t most_pending = std::size_t{1} << 20;

struct File {
    std::mutex mutex;
    std::FILE* stream = nullptr;
    long of_process = 0;
    bool ended = false;
    std::string pending;
};

/// Never destroyed: buffers of records may arrive while the process ends.
File& file() {
    static File& one = *new File;
    return one;
}

/// The arguments of this process.
std::string arguments() {
    std::ifstream stream("/proc/self/cmdline", std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(stream)), {}), list;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\0', begin), text.size());
        list += (list.empty() ? "" : ",") + json_text(std::string_view(text).substr(begin, end - begin));
        begin = end + 1;
    }
    return list;
}

std::string rank() {
    const std::optional<std::int64_t> rank = rank_of_process();
    return rank ? fmt::format(",\"rank\":{}", *rank) : "";
}

void put(File& out) {
    if (out.stream != nullptr && !out.pending.empty()) {
        std::fwrite(out.pending.data(), 1, out.pending.size(), out.stream);
        std::fflush(out.stream);
    }
    out.pending.clear();
}

void open(File& out) {
    out.of_process = this_process();
    out.ended = false;
    out.pending.clear();
    const Settings& asked = *settings();
    const std::string_view purpose = name(asked.purpose);
    out.stream = std::fopen(fmt::format("{}/{}.{}.jsonl", asked.directory, purpose, this_process()).c_str(), "we");
    out.pending = fmt::format(
        "{{\"kind\":\"process\",\"format\":\"kbench.program/1\",\"purpose\":\"{}\",\"pid\":{}{},\"arguments\":[{}],\"start_ns\":{}}}\n",
        purpose, this_process(), rank(), arguments(), now_ns());
}

void add(File& out, std::string_view line) {
    if (out.of_process != this_process()) open(out);
    if (out.ended) return;
    out.pending += line;
    out.pending += '\n';
}

/// The length of the UTF-8 sequence that `text` begins with; 0 where it is none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const std::size_t length = byte(0) < 0x80                      ? 1
                               : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                               : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                               : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                   : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    return length;
}

}  // namespace

std::string json_text(std::string_view text) {
    std::string all = "\"";
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        const auto c = static_cast<unsigned char>(text.front());
        if (length == 0)
            all += '?';
        else if (c == '"' || c == '\\')
            all += {'\\', static_cast<char>(c)};
        else if (c < 0x20)
            all += fmt::format("\\u{:04x}", c);
        else
            all += text.substr(0, length);
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return all + '"';
}

void write_line(std::string_view line) {
    File& out = file();
    const std::lock_guard lock(out.mutex);
    add(out, line);
    if (out.pending.size() > most_pending) put(out);
}

void write_last_line(std::string_view line) {
    File& out = file();
    const std::lock_guard lock(out.mutex);
    add(out, line);
    put(out);
    out.ended = true;
}

std::uint32_t text_number(std::string_view text) {
    if (text.empty()) return 0;
    static std::mutex& mutex = *new std::mutex;
    static auto& numbers = *new std::unordered_map<std::string, std::uint32_t>;
    const std::lock_guard lock(mutex);
    const auto [found, is_new] = numbers.try_emplace(std::string(text), static_cast<std::uint32_t>(numbers.size() + 1));
    if (is_new) write("{{\"kind\":\"text\",\"id\":{},\"text\":{}}}", found->second, json_text(text));
    return found->second;
}

void note(std::string_view text) { write("{{\"kind\":\"note\",\"text\":{}}}", json_text(text)); }

void flush_lines() {
    File& out = file();
    const std::lock_guard lock(out.mutex);
    if (out.of_process == this_process()) put(out);
}

}  // namespace kbench::attach
