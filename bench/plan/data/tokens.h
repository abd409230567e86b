// The tokens a model is run on, and other integers: from a file, or random.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace kbench {

/// Tokens for `batch` rows of `seq`, row by row, from a file or a pipe of any kind that read_integers (token_file.h)
/// knows. It holds batch * seq tokens, or seq, which then serve every row; a two-dimensional array is [batch, seq] or
/// [1, seq]. `what` names the input in errors. Throws UsageError: unreadable, another count or shape, not a number or
/// outside [0, vocab), with the position (from 0) and the value.
std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, std::int64_t batch, std::int64_t seq,
                                      std::int64_t vocab, std::string_view what = "tokens");

/// One number for each of `batch` rows, in [0, bound), from such a file: as many, [batch] or [batch, 1], or one for
/// all. `what` names them in errors: "length". Throws UsageError.
std::vector<std::int32_t> read_numbers_of_rows(const std::filesystem::path& path, std::int64_t batch,
                                               std::int64_t bound, std::string_view what);

/// All tokens of such a file, of any number from `least` on and any shape, one after another. Throws UsageError.
std::vector<std::int32_t> read_token_stream(const std::filesystem::path& path, std::int64_t least, std::int64_t vocab);

}  // namespace kbench
