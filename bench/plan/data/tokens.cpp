// Reads token files strictly: a token that is silently dropped or wrapped would change what is verified.
#include "bench/plan/data/tokens.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "bench/plan/data/array_shape.h"
#include "bench/plan/data/token_file.h"
#include "kbench/error.h"

namespace kbench {
namespace {

std::int32_t checked(const std::filesystem::path& path, std::int64_t position, std::int64_t value, std::int64_t bound,
                     std::string_view what = "token") {
    if (value < 0 || value >= bound)
        throw UsageError(
            fmt::format("{}: {} {} is {}; it should be in [0, {})", path.string(), what, position, value, bound));
    return static_cast<std::int32_t>(value);
}

/// Rows of `seq`: `batch` of them or one that serves all. A flat array holds them one after another, as text does.
std::vector<std::int64_t> read_rows(const std::filesystem::path& path, std::int64_t batch, std::int64_t seq,
                                    std::string_view what) {
    IntegerArray array = read_integers(path, "token");
    const std::int64_t wanted[] = {batch, seq}, one_row[] = {1, seq};
    const std::vector<std::int64_t>& found = array.shape;
    if (found.size() != 1 && found.size() != 2)
        throw UsageError(fmt::format("{}: shape {} has {} dimensions; {} have one or two: {}", path.string(),
                                     shape_text(found), found.size(), what, shape_text(wanted)));
    if (found.size() == 1 || fits(found, wanted) || fits(found, one_row)) return std::move(array.values);
    throw UsageError(fmt::format("{}: has shape {}, rows of {} {}{}, but {} need {}: {}", path.string(),
                                 shape_text(found), found[1], what,
                                 what == "tokens" ? fmt::format("; --seq {} needs rows of {}", seq, seq) : "", what,
                                 shape_text(wanted), why_it_does_not_fit(found, wanted)));
}

/// One number a row, or one for all.
std::vector<std::int64_t> read_column(const std::filesystem::path& path, std::int64_t batch, std::string_view what) {
    IntegerArray array = read_integers(path, what);
    const std::int64_t column[] = {batch, 1};
    if (array.shape.size() > 1 && array.values.size() != 1) require_shape(path, what, array.shape, column);
    return std::move(array.values);
}

}  // namespace

std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, std::int64_t batch, std::int64_t seq,
                                      std::int64_t vocab, std::string_view what) {
    const std::vector<std::int64_t> values = read_rows(path, batch, seq, what);
    const auto count = static_cast<std::int64_t>(values.size());
    if (count != seq && count != batch * seq)
        throw UsageError(fmt::format("{}: {} tokens; batch {} and sequence length {} need {}{}", path.string(), count,
                                     batch, seq, batch * seq,
                                     batch > 1 ? fmt::format(", or {} to be used for every row", seq) : ""));
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * seq));
    for (std::int64_t i = 0; i < batch * seq; ++i) {
        const std::int64_t position = i % count;
        tokens[i] = checked(path, position, values[position], vocab);
    }
    return tokens;
}

std::vector<std::int32_t> read_numbers_of_rows(const std::filesystem::path& path, std::int64_t batch,
                                               std::int64_t bound, std::string_view what) {
    const std::vector<std::int64_t> values = read_column(path, batch, what);
    const auto count = static_cast<std::int64_t>(values.size());
    if (count != 1 && count != batch)
        throw UsageError(fmt::format("{}: {} of {}; batch {} needs {}{}", path.string(), count, what, batch, batch,
                                     batch > 1 ? ", or 1 for all" : ""));
    std::vector<std::int32_t> numbers;
    for (std::int64_t i = 0; i < batch; ++i)
        numbers.push_back(checked(path, i % count, values[static_cast<std::size_t>(i % count)], bound, what));
    return numbers;
}

std::vector<std::int32_t> read_token_stream(const std::filesystem::path& path, std::int64_t least, std::int64_t vocab) {
    const std::vector<std::int64_t> values = read_integers(path, "token", RowLengths::of_any).values;
    if (static_cast<std::int64_t>(values.size()) < least)
        throw UsageError(fmt::format("{}: {} tokens; it should hold {} or more", path.string(), values.size(), least));
    std::vector<std::int32_t> tokens;
    tokens.reserve(values.size());
    for (const std::int64_t value : values)
        tokens.push_back(checked(path, static_cast<std::int64_t>(tokens.size()), value, vocab));
    return tokens;
}

}  // namespace kbench
