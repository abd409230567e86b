// Compressed text: a result holds every sample, and gzip makes a tenth of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kbench {

/// One gzip member (RFC 1952) without a name or a time, so that equal text gives equal bytes.
std::string gzip(std::string_view text);

/// Whether these are gzip's first bytes, which no JSON begins with.
bool is_gzip(std::string_view bytes);

/// The text of one or more members. Throws UsageError, one line that begins with `path`: damaged or cut off, or longer
/// than `most_bytes`, as a small file that was made to fill the memory is.
std::string gunzip(std::string_view bytes, const std::string& path, std::size_t most_bytes = std::size_t{4} << 30);

}  // namespace kbench
