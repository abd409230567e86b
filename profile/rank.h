// Which process of a program of several this is.
#pragma once

#include <cstdint>
#include <optional>

namespace kbench {

/// The rank that a launcher gave this process, if any: RANK, OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID.
std::optional<std::int64_t> rank_of_process();

}  // namespace kbench
