// Matrices and workspaces for the tests of cpu/, and comparison with the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <span>
#include <vector>

#include "cpu/reference/reference.h"
#include "cpu/vector.h"

namespace kbench::test {

/// Rows that an op of one stored type is tested with.
struct Case {
    DataType type;
    std::int64_t rows, width;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << name(c.type) << " " << c.rows << "x" << c.width; }

/// A dense row-major matrix of any stored type.
struct Matrix {
    DataType type;
    std::int64_t rows, columns;
    std::vector<std::byte> bytes;

    Matrix(DataType stored, std::int64_t row_count, std::int64_t column_count)
        : type(stored),
          rows(row_count),
          columns(column_count),
          bytes(static_cast<std::size_t>(row_count * column_count) * size_of(stored)) {}

    /// Seeded normal numbers.
    static Matrix normal(DataType type, std::int64_t rows, std::int64_t columns, unsigned seed, double deviation = 1,
                         double mean = 0) {
        Matrix matrix(type, rows, columns);
        std::mt19937 generator(seed);
        std::normal_distribution<double> distribution(mean, deviation);
        matrix.fill([&] { return distribution(generator); });
        return matrix;
    }
    /// Every element NaN, so that one that is never written is noticed.
    static Matrix poisoned(DataType type, std::int64_t rows, std::int64_t columns) {
        Matrix matrix(type, rows, columns);
        matrix.fill([] { return std::numeric_limits<double>::quiet_NaN(); });
        return matrix;
    }

    template <class Next>
    void fill(Next next) {
        cpu::with_element(type, [&]<class T>(T) {
            T* elements = reinterpret_cast<T*>(bytes.data());
            for (std::int64_t i = 0; i < rows * columns; ++i)
                cpu::store(elements[i], static_cast<cpu::Compute<T>>(next()));
        });
    }
    void* data() { return bytes.data(); }
    const void* data() const { return bytes.data(); }
    double operator()(std::int64_t row, std::int64_t column) const { return view()(row, column); }
    reference::View view() const { return {bytes.data(), type, rows, columns, columns}; }
    bool operator==(const Matrix&) const = default;
};

/// Every `row_step`-th row and `column_step`-th column, and the last ones.
inline std::vector<reference::Element> elements(std::int64_t rows, std::int64_t columns, std::int64_t row_step = 1,
                                                std::int64_t column_step = 1) {
    std::vector<reference::Element> chosen;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
            if ((r % row_step == 0 || r == rows - 1) && (c % column_step == 0 || c == columns - 1))
                chosen.push_back({r, c});
    return chosen;
}

/// Every chosen element of `computed` is within the reference's error bound.
inline void expect_agrees(const Matrix& computed, std::span<const reference::Element> chosen,
                          const std::vector<reference::Expected>& expected, Precision precision) {
    ASSERT_EQ(chosen.size(), expected.size());
    for (std::size_t i = 0; i < chosen.size(); ++i)
        ASSERT_TRUE(reference::agrees(computed(chosen[i].row, chosen[i].column), expected[i], precision, computed.type))
            << "at row " << chosen[i].row << ", column " << chosen[i].column << ": computed "
            << computed(chosen[i].row, chosen[i].column) << ", expected " << expected[i].value << " within "
            << reference::error_bound(expected[i], precision, computed.type);
}

/// The precision that a loop on stored `type` computes in.
inline Precision precision_of(DataType type) {
    constexpr Precision precisions[] = {Precision::fp16, Precision::bf16, Precision::fp32, Precision::fp64};
    return precisions[static_cast<int>(type)];
}

/// Memory at a 64-byte boundary that notices, when it is given back, whether anything was written behind it.
class Workspace {
  public:
    explicit Workspace(std::size_t bytes) : bytes_(bytes), memory_(bytes + guard, garbage) {}
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;
    ~Workspace() {
        for (std::size_t i = bytes_; i < memory_.size(); ++i)
            if (memory_[i] != garbage) {
                ADD_FAILURE() << "written " << i - bytes_ << " bytes behind a workspace of " << bytes_ << " bytes";
                return;
            }
    }
    void* data() { return memory_.data(); }

  private:
    template <class T>
    struct Aligned {
        using value_type = T;
        T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count, std::align_val_t(64))); }
        void deallocate(T* memory, std::size_t) { ::operator delete(memory, std::align_val_t(64)); }
        bool operator==(const Aligned&) const = default;
    };
    static constexpr std::size_t guard = 256;
    static constexpr unsigned char garbage = 0xff;  // NaN in every type: padding that is read shows
    std::size_t bytes_;
    std::vector<unsigned char, Aligned<unsigned char>> memory_;
};

}  // namespace kbench::test
