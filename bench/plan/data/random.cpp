// Philox words become normal numbers by Box and Muller's transform (Ann. Math. Statist. 29(2), 1958). The logarithm and
// the sine are short series written out here: plain additions and multiplications in a fixed order vectorise at every
// width and give the same bits at each, which a vector mathematics library does not. Hence -ffp-contract=off and no
// -ffast-math.
#include "bench/plan/data/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/plan/data/convert.h"
#include "bench/plan/data/vectorise.h"

namespace kbench {
namespace {

// A tile is what one call of the vector loop makes: words 0 to 3 of `lanes` counters, stored word by word.
constexpr std::int64_t lanes = 256, tile = 4 * lanes;

using Words = std::array<std::uint32_t, 4>;

inline Words philox(Words counter, std::uint32_t key_0, std::uint32_t key_1) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product_0 = std::uint64_t{0xD2511F53u} * counter[0];
        const std::uint64_t product_1 = std::uint64_t{0xCD9E8D57u} * counter[2];
        counter = {
            static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key_0, static_cast<std::uint32_t>(product_1),
            static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key_1, static_cast<std::uint32_t>(product_0)};
        key_0 += 0x9E3779B9u;
        key_1 += 0xBB67AE85u;
    }
    return counter;
}

/// Where a stream's counters lie: the seed is the key, the name's hash the upper half of the counter.
struct Stream {
    std::uint32_t key_0, key_1, name_0, name_1;

    Stream(std::uint64_t seed, std::string_view stream_name)
        : key_0(static_cast<std::uint32_t>(seed)), key_1(static_cast<std::uint32_t>(seed >> 32)) {
        std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
        for (unsigned char letter : stream_name) hash = (hash ^ letter) * 0x100000001b3u;
        name_0 = static_cast<std::uint32_t>(hash);
        name_1 = static_cast<std::uint32_t>(hash >> 32);
    }
};

/// sqrt(-2 ln u) for u = k / 2^31, k odd: u is never 0, and at most 1 after rounding.
inline float radius(std::uint32_t word) {
    const float scaled = static_cast<float>(static_cast<std::int32_t>(word >> 1 | 1u));
    constexpr std::int32_t sqrt_half = 0x3f3504f3;  // the mantissa's interval is [sqrt(1/2), sqrt(2))
    const std::int32_t shifted = std::bit_cast<std::int32_t>(scaled) - sqrt_half;
    const float exponent = static_cast<float>((shifted >> 23) - 31);
    const float mantissa = std::bit_cast<float>((shifted & 0x7fffff) + sqrt_half);
    // ln m = 2 artanh s, s = (m - 1) / (m + 1), |s| < 0.172: the first term left out is below 2e-9 of the sum.
    const float s = (mantissa - 1.0f) / (mantissa + 1.0f), s2 = s * s;
    const float series = 1.0f + s2 * (1.0f / 3 + s2 * (1.0f / 5 + s2 * (1.0f / 7 + s2 * (1.0f / 9))));
    return std::sqrt(-2.0f * (exponent * 0.693147181f + 2.0f * s * series));
}

struct UnitVector {
    float x, y;
};

/// A point of the unit circle at a uniform angle: the word's top two bits turn by quarters, the others give the angle
/// within one, centred on 0, where the Taylor series below are exact to fp32.
inline UnitVector direction(std::uint32_t word) {
    const std::uint32_t quarter = word >> 30;
    const float angle = static_cast<float>(static_cast<std::int32_t>(word & 0x3fffffffu) - 0x20000000) *
                        static_cast<float>(1.57079632679489662 * 0x1p-30);
    const float a2 = angle * angle;
    const float sine =
        angle * (1.0f + a2 * (-1.0f / 6 + a2 * (1.0f / 120 + a2 * (-1.0f / 5040 + a2 * (1.0f / 362880)))));
    const float cosine =
        1.0f + a2 * (-1.0f / 2 + a2 * (1.0f / 24 + a2 * (-1.0f / 720 + a2 * (1.0f / 40320 - a2 * (1.0f / 3628800)))));
    const std::uint32_t x = std::bit_cast<std::uint32_t>((quarter & 1u) != 0 ? sine : cosine);
    const std::uint32_t y = std::bit_cast<std::uint32_t>((quarter & 1u) != 0 ? cosine : sine);
    return {std::bit_cast<float>(x ^ ((quarter + 1u) & 2u) << 30), std::bit_cast<float>(y ^ (quarter & 2u) << 30)};
}

/// Numbers [index * tile, (index + 1) * tile) of a stream.
KBENCH_VECTORISED void normal_tile(const Stream& stream, std::int64_t index, float standard_deviation,
                                   float* __restrict__ out) {
    const auto first = static_cast<std::uint64_t>(index) * lanes;  // a multiple of `lanes`: its low word cannot carry
    const auto low = static_cast<std::uint32_t>(first), high = static_cast<std::uint32_t>(first >> 32);
    const Stream s = stream;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const Words words = philox({low + lane, high, s.name_0, s.name_1}, s.key_0, s.key_1);
        const float radius_0 = standard_deviation * radius(words[0]), radius_1 = standard_deviation * radius(words[2]);
        const UnitVector direction_0 = direction(words[1]), direction_1 = direction(words[3]);
        out[lane] = radius_0 * direction_0.x;
        out[lanes + lane] = radius_0 * direction_0.y;
        out[2 * lanes + lane] = radius_1 * direction_1.x;
        out[3 * lanes + lane] = radius_1 * direction_1.y;
    }
}

/// Adds bits below fp32's last: a relative change below 2^-26, too small to alter the nearest fp32 number, taken from a
/// hash of the number itself. Without it a kernel that rounds fp64 operands to fp32 would compute the right answer.
KBENCH_VECTORISED void extend_tile(const float* __restrict__ from, double* __restrict__ to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::uint32_t hash = std::bit_cast<std::uint32_t>(from[i]) * 0x9E3779B1u;
        hash = (hash ^ hash >> 15) * 0x85EBCA77u;
        to[i] = from[i] * (1.0 + static_cast<std::int32_t>(hash) * 0x1p-57);
    }
}

/// Writes numbers [begin, end) of a contiguous tile that starts at number `start` into rows of `columns`.
void store(const std::byte* numbers, std::size_t size, std::int64_t start, std::int64_t end, std::int64_t columns,
           std::int64_t row_stride, std::byte* destination) {
    for (std::int64_t i = start; i < end;) {
        const std::int64_t row = i / columns, column = i % columns;
        const std::int64_t length = std::min(end - i, columns - column);
        std::copy_n(numbers + (i - start) * size, length * size, destination + (row * row_stride + column) * size);
        i += length;
    }
}

void fill_rows(const Stream& stream, double mean, double standard_deviation, DataType type, std::int64_t rows,
               std::int64_t columns, void* destination, std::int64_t row_stride) {
    if (type == DataType::int32)
        throw std::invalid_argument(
            "normal numbers cannot be stored as int32; fp16, bf16, fp32 and fp64 can hold them");
    const std::int64_t count = rows * columns, tiles = (count + tile - 1) / tile;
    auto* out = static_cast<std::byte*>(destination);
    const std::size_t size = size_of(type);
#pragma omp parallel for schedule(static)
    for (std::int64_t index = 0; index < tiles; ++index) {
        alignas(64) float numbers[tile];
        alignas(64) std::byte stored[tile * sizeof(double)];
        normal_tile(stream, index, static_cast<float>(standard_deviation), numbers);
        if (mean != 0)
            for (float& number : numbers) number += static_cast<float>(mean);
        const std::int64_t start = index * tile, end = std::min(count, start + tile);
        if (type == DataType::fp64)
            extend_tile(numbers, reinterpret_cast<double*>(stored), tile);
        else
            convert(DataType::fp32, numbers, type, stored, tile);
        store(stored, size, start, end, columns, row_stride, out);
    }
}

/// Numbers `first` and after of the stream of whole numbers in [least, bound).
void fill_integers(std::uint64_t seed, std::int64_t least, std::int64_t bound, std::int64_t first, std::int64_t count,
                   std::int32_t* out) {
    const Stream stream(seed, "tokens");
    for (std::int64_t k = 0; k < count; ++k) {
        const std::int64_t i = first + k;
        const auto counter = static_cast<std::uint64_t>(i / 4);
        const Words words = philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                                    stream.name_0, stream.name_1},
                                   stream.key_0, stream.key_1);
        // The upper half of a product maps 32 bits onto [0, n) with a bias below n / 2^32.
        const auto product = std::uint64_t{words[i % 4]} * static_cast<std::uint64_t>(bound - least);
        out[k] = static_cast<std::int32_t>(least + static_cast<std::int64_t>(product >> 32));
    }
}

/// Row r has -infinity right of column r % period.
void mask_rows(std::int64_t period, DataType type, std::int64_t rows, std::int64_t columns, std::byte* data,
               std::int64_t row_stride) {
    constexpr double infinity = -std::numeric_limits<double>::infinity();
    std::array<std::byte, sizeof infinity> pattern;
    convert(DataType::fp64, &infinity, type, pattern.data(), 1);
    const auto size = static_cast<std::int64_t>(size_of(type));
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = r % period + 1; c < columns; ++c)
            std::copy_n(pattern.begin(), size, data + (r * row_stride + c) * size);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    return philox(counter, key[0], key[1]);
}

void fill_normal(std::uint64_t seed, std::string_view stream_name, double standard_deviation, DataType type,
                 void* destination, std::int64_t count) {
    fill_rows(Stream(seed, stream_name), 0, standard_deviation, type, 1, count, destination, count);
}

void fill_contents(const Contents& contents, std::uint64_t seed, std::string_view stream_name, DataType type,
                   std::int64_t rows, std::int64_t columns, void* destination, std::int64_t row_stride) {
    auto* out = static_cast<std::byte*>(destination);
    const auto row_bytes = row_stride * static_cast<std::int64_t>(size_of(type));
    switch (contents.kind) {
        case Contents::Kind::below:
            for (std::int64_t r = 0; r < rows; ++r)
                fill_integers(seed, contents.first, contents.bound, r * columns, columns,
                              reinterpret_cast<std::int32_t*>(out + r * row_bytes));
            return;
        case Contents::Kind::normal:
        case Contents::Kind::causal:
            fill_rows(Stream(seed, stream_name), contents.mean, contents.deviation, type, rows, columns, destination,
                      row_stride);
            if (contents.kind == Contents::Kind::causal)
                mask_rows(contents.bound, type, rows, columns, out, row_stride);
            return;
        case Contents::Kind::listed:
            if (columns > static_cast<std::int64_t>(contents.numbers.size()))
                throw std::invalid_argument("listed contents are for up to 16 columns, not " + std::to_string(columns));
            if (type == DataType::int32) {
                for (std::int64_t r = 0; r < rows; ++r)
                    std::transform(contents.numbers.begin(), contents.numbers.begin() + columns,
                                   reinterpret_cast<std::int32_t*>(out + r * row_bytes),
                                   [](double number) { return static_cast<std::int32_t>(number); });
                return;
            }
            for (std::int64_t r = 0; r < rows; ++r)
                convert(DataType::fp64, contents.numbers.data(), type, out + r * row_bytes, columns);
            return;
        case Contents::Kind::ones:
        case Contents::Kind::zeros: break;
    }
    const std::vector<float> row(static_cast<std::size_t>(columns),
                                 contents.kind == Contents::Kind::ones ? 1.0f : 0.0f);
    for (std::int64_t r = 0; r < rows; ++r) convert(DataType::fp32, row.data(), type, out + r * row_bytes, columns);
}

void fill_random(const Tensor& tensor, std::uint64_t seed, DataType type, void* destination, std::int64_t row_stride) {
    fill_contents(tensor.contents, seed, tensor.name, type, tensor.rows(), tensor.columns(), destination, row_stride);
}

}  // namespace kbench
