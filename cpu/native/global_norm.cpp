// The norm of all gradients. OpenMP threads share a fixed number of parts of each gradient, so that it does not matter
// which thread sums which part.
#include "cpu/native/global_norm.h"

#include <algorithm>
#include <cmath>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

constexpr std::int64_t parts = 64;
/// Elements that are summed in fp32: enough to amortise a vectorised call, few enough for accurate sums.
constexpr std::int64_t chunk = 4096;

template <class T>
double sum_of_squares(const T* from, std::int64_t size) {
    using C = Compute<T>;
    double sum = 0;
    for (std::int64_t begin = 0; begin < size; begin += chunk) {
        const std::int64_t count = std::min(chunk, size - begin);
        C of_chunk = 0;
        vectorised([=, &of_chunk] {
            of_chunk =
                sum_over<C>(count, [=](std::int64_t i) { return load(from[begin + i]) * load(from[begin + i]); });
        });
        sum += static_cast<double>(of_chunk);
    }
    return sum;
}

}  // namespace

void global_norm(DataType type, const GlobalNorm& op, std::span<void* const> gradients, void* norm) {
    with_element(type, [&]<class T>(T) {
        double total = 0;
        for (std::size_t tensor = 0; tensor < op.sizes.size(); ++tensor) {
            const T* from = static_cast<const T*>(gradients[tensor]);
            const std::int64_t size = op.sizes[tensor], part = (size + parts - 1) / parts;
            double sums[parts] = {};
#pragma omp parallel for schedule(static)
            for (std::int64_t i = 0; i < parts; ++i) {
                const std::int64_t begin = std::min(size, i * part), end = std::min(size, begin + part);
                sums[i] = sum_of_squares(from + begin, end - begin);
            }
            for (const double sum : sums) total += sum;
        }
        *static_cast<Compute<T>*>(norm) = static_cast<Compute<T>>(std::sqrt(total));
    });
}

}  // namespace kbench::cpu
