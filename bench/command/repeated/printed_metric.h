// A number in what a program prints, found by a regular expression.
#pragma once

#include <filesystem>
#include <regex>
#include <string>

namespace kbench {

class PrintedMetric {
  public:
    /// `pattern` as ECMAScript writes them, with one group, around the number. Throws UsageError where it is none.
    explicit PrintedMetric(const std::string& pattern);

    struct Found {
        double value = 0;
        std::string why_not;  ///< empty where there is a value, else why: a sentence's end, as in "printed {}"
    };
    /// The last number of `file` that matches, line by line; a carriage return ends a line, too. Lines of more than
    /// longest_line bytes are passed over. No value where nothing matches, or where what matches last is no finite
    /// number above 0.
    Found last_in(const std::filesystem::path& file) const;

    /// std::regex calls itself for each character: longer lines could end the stack.
    static constexpr std::size_t longest_line = 4096;

  private:
    std::regex regex_;
};

}  // namespace kbench
