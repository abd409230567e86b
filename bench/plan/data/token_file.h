// Integers as people keep them: .npy of any integer type, text, JSON, JSON lines, raw numbers, the token files of
// llm.c; from a file or from a pipe. Which it is the content tells, not the name.
#pragma once

#include <filesystem>
#include <string_view>

#include "bench/plan/data/npy.h"

namespace kbench {

/// How `train.bin:uint16` is meant: a file of raw little-endian numbers, whose type nothing else tells.
struct TokenFile {
    std::filesystem::path path;  ///< "-" is stdin
    std::string_view type;       ///< empty without one
};
/// A file that is there under the whole name has no type. Throws UsageError where what stands behind the colon of a
/// file's name is no type.
TokenFile token_file(const std::filesystem::path& name);

/// Whether rows of a list of lists must be of one length; otherwise they become one row where they are not.
enum class RowLengths { of_one_length, of_any };

/// All integers of the file that `name` says; text, raw numbers and lists have one dimension, lists of lists two.
/// `what` is what an integer is called in errors: "token". Throws UsageError with the position of what is no integer.
IntegerArray read_integers(const std::filesystem::path& name, std::string_view what,
                           RowLengths rows = RowLengths::of_one_length);

}  // namespace kbench
