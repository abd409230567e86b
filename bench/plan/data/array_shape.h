// Shapes of arrays in files against those of a model's inputs. An array of as many numbers in another order of axes is
// not the same input: a spectrogram with time before frequency would run, and give figures of noise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace kbench {

/// As NumPy writes it: "(3, 1, 161, 20)", "(3,)".
std::string shape_text(std::span<const std::int64_t> shape);

/// Whether an array of shape `found` may serve as `wanted`, both in C order: equal axis by axis, except that axes of
/// length 1 may be missing, and more of them may lead. Neither moves a number. (1, 3) is not (3, 1): as many axes must
/// be the same ones.
bool fits(std::span<const std::int64_t> found, std::span<const std::int64_t> wanted);

/// What would make `found` fit, to stand behind both shapes: the transpose, or the first axis that differs.
std::string why_it_does_not_fit(std::span<const std::int64_t> found, std::span<const std::int64_t> wanted);

/// Throws UsageError, one line with both shapes, where `found` does not fit. `what` names the input.
void require_shape(const std::filesystem::path& path, std::string_view what, std::span<const std::int64_t> found,
                   std::span<const std::int64_t> wanted);

}  // namespace kbench
