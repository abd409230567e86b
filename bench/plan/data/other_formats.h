// What a file is that somebody took for a safetensors file: told by how it begins, with what to do about it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kbench {

/// So many bytes of a file are looked at; a shorter file is given whole.
inline constexpr std::size_t recognised_bytes = 512;

/// What was wanted instead.
enum class Wanted { checkpoint, tokens };

/// "a Git LFS pointer: the file itself was not downloaded; run git lfs pull"; empty for what is not recognised.
std::string other_format(std::string_view first_bytes, Wanted wanted = Wanted::checkpoint);

}  // namespace kbench
