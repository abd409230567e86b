// Reads a log as a stream: it may be long, and so may its lines.
#include "bench/command/repeated/output_lines.h"

#include <fstream>
#include <iterator>

#include "models/base/format.h"

namespace kbench {

void for_each_output_line(const std::filesystem::path& file,
                          const std::function<void(const std::string& line, bool is_whole)>& each) {
    std::ifstream in(file, std::ios::binary);
    std::string line;
    bool is_whole = true;
    for (std::istreambuf_iterator<char> at(in), end; at != end; ++at) {
        if (*at == '\n' || *at == '\r') {
            each(line, is_whole);
            line.clear();
            is_whole = true;
        } else if (line.size() < longest_output_line) {
            line += *at;
        } else {
            is_whole = false;
        }
    }
    if (!line.empty()) each(line, is_whole);
}

std::string last_output_line(const std::filesystem::path& file) {
    constexpr std::size_t shown = 300;
    std::string last;
    for_each_output_line(file, [&](const std::string& line, bool) {
        if (!line.empty()) last = line;
    });
    return one_line(last.substr(0, shown));
}

}  // namespace kbench
