// Where a loop over rows writes its output: to memory as usual, or past the caches. A store that bypasses the caches
// saves reading each line before it is overwritten. That is a third of the traffic of an op that reads one array and
// writes one. Internal to cpu/native/; the classes are inlined into the calls of `vectorised`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kbench::cpu {

inline constexpr std::int64_t cache_line_bytes = 64;

/// The most that a loop writes before it calls written(): Streamed's buffer then stays in L1 next to the row that it is
/// made from.
inline constexpr std::int64_t chunk_bytes = 4096;

/// Bytes in all last-level caches that the process may use; the largest number when the system does not say.
std::int64_t last_level_cache_bytes();

/// Copies whole lines, `to` at a multiple of 64, with the widest non-temporal stores available (streamed.cpp).
void stream_lines(std::byte* to, const std::byte* from, std::int64_t lines);
/// Orders the calling thread's non-temporal stores before its next stores.
void stream_fence();

/// Ordinary stores of consecutive elements from `out` on.
class Stored {
  public:
    explicit Stored(void* out) : to_(static_cast<std::byte*>(out)) {}
    /// Where to write the next elements, at most chunk_bytes.
    template <class T>
    T* room() const {
        return reinterpret_cast<T*>(to_);
    }
    /// Tells that this many bytes have been written there.
    void written(std::int64_t bytes) { to_ += bytes; }

  private:
    std::byte* to_;
};

/// The same interface for output that is not read soon: bytes gather in a buffer and leave it in whole lines. Only the
/// first and the last line of `out`, which others may share, are stored as usual.
class Streamed {
  public:
    explicit Streamed(void* out)
        : begin_(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) % cache_line_bytes)),
          filled_(begin_),
          line_(static_cast<std::byte*>(out) - begin_) {}
    Streamed(const Streamed&) = delete;
    Streamed& operator=(const Streamed&) = delete;
    ~Streamed() {
        store_until(filled_);
        stream_fence();
    }

    template <class T>
    T* room() {
        return reinterpret_cast<T*>(buffer_ + filled_);
    }
    void written(std::int64_t bytes) {
        filled_ += bytes;
        const std::int64_t whole = filled_ / cache_line_bytes * cache_line_bytes;
        if (whole == 0) return;
        const std::int64_t shared = begin_ > 0 ? cache_line_bytes : 0;
        store_until(shared);
        stream_lines(line_ + shared, buffer_ + shared, (whole - shared) / cache_line_bytes);
        line_ += whole;
        filled_ -= whole;
        begin_ = 0;
        std::memcpy(buffer_, buffer_ + whole, static_cast<std::size_t>(filled_));
    }

  private:
    void store_until(std::int64_t end) {
        if (end > begin_) std::memcpy(line_ + begin_, buffer_ + begin_, static_cast<std::size_t>(end - begin_));
    }

    std::int64_t begin_;   ///< first byte in the buffer, above 0 in the first line only
    std::int64_t filled_;  ///< one past the last byte in it
    std::byte* line_;      ///< where the buffer's first line goes
    alignas(cache_line_bytes) std::byte buffer_[chunk_bytes + cache_line_bytes];
};

}  // namespace kbench::cpu
