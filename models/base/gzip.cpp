#include "models/base/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "kbench/error.h"

namespace kbench {
namespace {

constexpr int with_gzip_header = 16 + MAX_WBITS;
constexpr std::size_t block_bytes = 256 << 10;

/// zlib counts in 32 bits: the next part of what is left.
uInt next_part(std::size_t left) {
    return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

Bytef* bytes_of(const char* text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text)); }

struct Deflate : z_stream {
    Deflate() : z_stream{} {
        if (deflateInit2(this, Z_BEST_COMPRESSION, Z_DEFLATED, with_gzip_header, 9, Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::bad_alloc();
    }
    ~Deflate() { deflateEnd(this); }
    Deflate(const Deflate&) = delete;
    Deflate& operator=(const Deflate&) = delete;
};

struct Inflate : z_stream {
    Inflate() : z_stream{} {
        if (inflateInit2(this, with_gzip_header) != Z_OK) throw std::bad_alloc();
    }
    ~Inflate() { inflateEnd(this); }
    Inflate(const Inflate&) = delete;
    Inflate& operator=(const Inflate&) = delete;
};

}  // namespace

std::string gzip(std::string_view text) {
    Deflate stream;
    std::string bytes, block(block_bytes, '\0');
    std::size_t taken = 0;
    int state = Z_OK;
    while (state != Z_STREAM_END) {
        if (stream.avail_in == 0 && taken < text.size()) {
            stream.next_in = bytes_of(text.data() + taken);
            stream.avail_in = next_part(text.size() - taken);
            taken += stream.avail_in;
        }
        stream.next_out = bytes_of(block.data());
        stream.avail_out = static_cast<uInt>(block.size());
        state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
        bytes.append(block, 0, block.size() - stream.avail_out);
    }
    return bytes;
}

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view bytes, const std::string& path, std::size_t most_bytes) {
    Inflate stream;
    std::string text, block(block_bytes, '\0');
    std::size_t taken = 0;
    int state = Z_OK;
    while (true) {
        if (stream.avail_in == 0) {
            if (taken == bytes.size()) break;
            stream.next_in = bytes_of(bytes.data() + taken);
            stream.avail_in = next_part(bytes.size() - taken);
            taken += stream.avail_in;
        }
        if (state == Z_STREAM_END) inflateReset(&stream);  // another member follows
        stream.next_out = bytes_of(block.data());
        stream.avail_out = static_cast<uInt>(block.size());
        state = inflate(&stream, Z_NO_FLUSH);
        text.append(block, 0, block.size() - stream.avail_out);
        if (state != Z_OK && state != Z_STREAM_END)
            throw UsageError(fmt::format("{}: its gzip data are damaged", path));
        if (text.size() > most_bytes)
            throw UsageError(
                fmt::format("{}: decompresses to more than {} bytes; no result is so long", path, most_bytes));
    }
    if (state != Z_STREAM_END) throw UsageError(fmt::format("{}: its gzip data are cut off", path));
    return text;
}

}  // namespace kbench
