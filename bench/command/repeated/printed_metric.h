// A number in what a program prints, found by a regular expression.
#pragma once

#include <filesystem>
#include <regex>
#include <string>

#include "analysis/compare/ab.h"

namespace kbench {

class PrintedMetric {
  public:
    /// `pattern` as ECMAScript writes them, with one group, around the number. Throws UsageError where it is none, or
    /// where it matches an empty text.
    explicit PrintedMetric(const std::string& pattern);

    struct Found {
        double value = 0;
        Digits digits;
        std::string why_not;  ///< empty where there is a value, else why: a sentence's end, as in "printed {}"
    };
    /// The last number of `file` that matches, line by line. Lines longer than longest_output_line are passed over. No
    /// value where nothing matches, or where what matches last is no finite number above 0.
    Found last_in(const std::filesystem::path& file) const;

  private:
    std::regex regex_;
};

}  // namespace kbench
