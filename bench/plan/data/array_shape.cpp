// Axes of length 1 are left out of the comparison where they are missing or lead.
#include "bench/plan/data/array_shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "kbench/error.h"

namespace kbench {
namespace {

using Shape = std::span<const std::int64_t>;

std::vector<std::int64_t> sorted_without_ones(Shape shape) {
    std::vector<std::int64_t> axes;
    for (const std::int64_t extent : shape)
        if (extent != 1) axes.push_back(extent);
    std::ranges::sort(axes);
    return axes;
}

/// The axes of `found` in the order that gives `wanted`, which has the same ones: an axis that stands right stays.
std::vector<std::size_t> transposition(Shape found, Shape wanted) {
    std::vector<bool> is_taken(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) is_taken[i] = found[i] == wanted[i];
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::size_t axis = i;
        if (found[i] != wanted[i]) {
            for (axis = 0; is_taken[axis] || found[axis] != wanted[i];) ++axis;
            is_taken[axis] = true;
        }
        order.push_back(axis);
    }
    return order;
}

}  // namespace

std::string shape_text(Shape shape) {
    return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

bool fits(Shape found, Shape wanted) {
    while (found.size() > wanted.size() && found.front() == 1) found = found.subspan(1);
    std::size_t matched = 0;
    for (const std::int64_t extent : wanted) {
        if (matched < found.size() && found[matched] == extent)
            ++matched;
        else if (extent != 1 || found.size() == wanted.size())
            return false;
    }
    return matched == found.size();
}

std::string why_it_does_not_fit(Shape found, Shape wanted) {
    if (found.size() == wanted.size() && std::ranges::is_permutation(found, wanted))
        return fmt::format("numpy.transpose(x, ({})) is that", fmt::join(transposition(found, wanted), ", "));
    if (sorted_without_ones(found) == sorted_without_ones(wanted)) return "transpose it: its axes are in another order";
    if (found.size() != wanted.size())
        return fmt::format("it has {} axes where {} are wanted", found.size(), wanted.size());
    const auto differs = std::ranges::mismatch(found, wanted);
    return fmt::format("axis {} is {} where {} is wanted", differs.in1 - found.begin(), *differs.in1, *differs.in2);
}

void require_shape(const std::filesystem::path& path, std::string_view what, Shape found, Shape wanted) {
    if (fits(found, wanted)) return;
    throw UsageError(fmt::format("{}: has shape {}, but {} needs {}: {}", path.string(), shape_text(found), what,
                                 shape_text(wanted), why_it_does_not_fit(found, wanted)));
}

}  // namespace kbench
