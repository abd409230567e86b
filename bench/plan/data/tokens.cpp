// Reads token files strictly: a token that is silently dropped or wrapped would change what is verified.
#include "bench/plan/data/tokens.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "bench/plan/data/npy.h"
#include "bench/plan/data/random.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"

namespace kbench {
namespace {

constexpr std::string_view separators = " \t\r\n\v\f,";

std::vector<std::int64_t> read_text(const std::filesystem::path& path, std::string_view what = "token") {
    const std::string content = read_whole_file(path);
    const std::string_view text = content;
    std::vector<std::int64_t> values;
    for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
        const std::string_view word = text.substr(at, end - at);
        std::int64_t value = 0;
        const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
        if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size())
            throw UsageError(fmt::format("{}: {} {} is '{}'; it should be an integer", path.string(), what,
                                         values.size(), word.substr(0, 32)));
        values.push_back(value);
        at = text.find_first_not_of(separators, end);
    }
    return values;
}

std::int32_t checked(const std::filesystem::path& path, std::int64_t position, std::int64_t value, std::int64_t bound,
                     std::string_view what = "token") {
    if (value < 0 || value >= bound)
        throw UsageError(
            fmt::format("{}: {} {} is {}; it should be in [0, {})", path.string(), what, position, value, bound));
    return static_cast<std::int32_t>(value);
}

std::vector<std::int64_t> read_array(const std::filesystem::path& path, std::int64_t seq) {
    IntegerArray array = read_npy_integers(path);
    if (array.shape.size() != 1 && array.shape.size() != 2)
        throw UsageError(fmt::format("{}: {} dimensions; tokens have one or two", path.string(), array.shape.size()));
    if (array.shape.size() == 2 && array.shape[1] != seq)
        throw UsageError(
            fmt::format("{}: rows of {} tokens; --seq {} needs rows of {}", path.string(), array.shape[1], seq, seq));
    return std::move(array.values);
}

}  // namespace

std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, std::int64_t batch, std::int64_t seq,
                                      std::int64_t vocab) {
    const std::vector<std::int64_t> values = path.extension() == ".npy" ? read_array(path, seq) : read_text(path);
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
    const std::vector<std::int64_t> values =
        path.extension() == ".npy" ? read_npy_integers(path).values : read_text(path, what);
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
    const std::vector<std::int64_t> values =
        path.extension() == ".npy" ? read_npy_integers(path).values : read_text(path);
    if (static_cast<std::int64_t>(values.size()) < least)
        throw UsageError(fmt::format("{}: {} tokens; it should hold {} or more", path.string(), values.size(), least));
    std::vector<std::int32_t> tokens;
    tokens.reserve(values.size());
    for (const std::int64_t value : values)
        tokens.push_back(checked(path, static_cast<std::int64_t>(tokens.size()), value, vocab));
    return tokens;
}

std::vector<std::int32_t> random_tokens(std::uint64_t seed, std::int64_t batch, std::int64_t seq, std::int64_t vocab) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch * seq));
    fill_tokens(seed, vocab, batch * seq, tokens.data());
    return tokens;
}

}  // namespace kbench
