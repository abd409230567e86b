// Ops on many tensors at once: their sizes as text, and names for the operands of each.
//
//     kbench::tensor_sizes_text({334, 333, 333});  // "n1000t3", which parse_tensor_sizes turns back
//     kbench::numbered("weight", 3);               // "weight3"
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kbench/op.h"

namespace kbench {

/// "n1000t3" means 1000 elements in 3 tensors: equal sizes, or the first ones larger by 1 where they do not divide.
inline std::vector<std::int64_t> parse_tensor_sizes(ShapeText& shape) {
    const std::int64_t total = shape.size('n'), tensors = shape.size_or('t', 1);
    if (tensors > total) throw ShapeText::Wrong();
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(tensors), total / tensors);
    for (std::int64_t i = 0; i < total % tensors; ++i) ++sizes[static_cast<std::size_t>(i)];
    return sizes;
}

inline std::int64_t total_size(const std::vector<std::int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

/// The text of any list of sizes; parsing it again gives tensors of equal sizes.
inline std::string tensor_sizes_text(const std::vector<std::int64_t>& sizes) {
    return shape_text({{'n', total_size(sizes)}, {'t', static_cast<std::int64_t>(sizes.size())}});
}

/// "weight3", in memory that lives as long as the program, as names of operands must.
inline std::string_view numbered(std::string_view name, std::size_t number) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, std::size_t>, std::string> names;
    const std::lock_guard lock(mutex);
    std::string& made = names[{std::string(name), number}];
    if (made.empty()) made = std::string(name) + std::to_string(number);
    return made;
}

}  // namespace kbench
