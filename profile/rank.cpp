#include "profile/rank.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace kbench {

std::optional<std::int64_t> rank_of_process() {
    for (const char* variable : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
        const char* const text = std::getenv(variable);
        std::int64_t rank = 0;
        if (text == nullptr) continue;
        const auto [end, error] = std::from_chars(text, text + std::strlen(text), rank);
        if (error == std::errc() && *end == '\0' && rank >= 0) return rank;
    }
    return std::nullopt;
}

}  // namespace kbench
