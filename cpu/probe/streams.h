// Streams through memory: three arrays far larger than the caches, read or combined by all threads or by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cpu/vector.h"

namespace kbench::cpu {

/// Arrays a, b and c of doubles. Each of `threads` OpenMP threads owns one part of all three. It writes that part
/// first, so that its memory is near, and alone uses it later. With one thread the caller does everything.
class Streams {
  public:
    /// Returns "" where this CPU has loops for streams, else why not.
    static std::string unavailable();

    /// Throws std::bad_alloc. b and c hold small whole numbers, a zeros. `isa` chooses the loops; the CPU must have it.
    Streams(std::int64_t bytes, int threads, VectorIsa isa = vector_isa());

    std::int64_t elements() const { return elements_; }
    int threads() const { return threads_; }
    const double* a() const { return a_.get(); }
    const double* b() const { return b_.get(); }
    const double* c() const { return c_.get(); }

    /// `thread` reads its part of all three arrays. Returns the sum of their elements.
    double read(int thread) const;
    /// `thread` computes its part of a = b + s c. Its stores bypass the caches, so that no line of a is read first.
    void triad(int thread, double s);

    /// Bytes that all threads' parts move together.
    double read_bytes() const { return 3.0 * sizeof(double) * static_cast<double>(elements_); }
    double triad_bytes() const { return read_bytes(); }

  private:
    struct Free {
        void operator()(double* memory) const;
    };
    using Array = std::unique_ptr<double[], Free>;
    static Array allocate(std::int64_t elements);
    /// First element of a thread's part; the part ends where the next begins.
    std::int64_t begin(int thread) const;

    std::int64_t elements_;
    int threads_;
    VectorIsa isa_;
    Array a_, b_, c_;
};

}  // namespace kbench::cpu
