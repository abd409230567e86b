// Kernels of known nature that are no probes: FMAs by blocks of which an SM holds one, chains of dependent loads, work
// that keeps one unit busy, and work with two bottlenecks.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kbench::cuda::known {

inline constexpr int fma_block_threads = 1024;

/// `blocks` blocks that each fill an SM's schedulers with FFMA in registers; a second one does not fit on the SM.
/// out [blocks * fma_block_threads] floats.
void fma_blocks(int blocks, int iterations, float* out, cudaStream_t stream);
constexpr double fma_block_flops(int blocks, int iterations) {
    return 2.0 * 4 * 32 * fma_block_threads * blocks * iterations;  // 4 chains, 32 steps
}

/// One after the other, in every block: the SM's clock is watched for fill_cycles; FFMAs in registers, in each
/// iteration as many as those of fma_blocks(), with wasted_slots shifts a warp between them, each of which takes the
/// place of an FFMA; the clock is watched for epilogue_cycles.
struct Stages {
    std::int64_t fill_cycles = 0;
    int iterations = 0, wasted_slots = 0;  ///< slots: 0, 64 or 96; shifts are issued every other cycle at most
    std::int64_t epilogue_cycles = 0;
};
/// A block fills an SM's schedulers, and a second one does not fit there. out [blocks * fma_block_threads] floats.
void stages(const Stages& stages, int blocks, float* out, cudaStream_t stream);
inline constexpr int stage_warps = fma_block_threads / 32 / 4;  ///< each scheduler's
/// Cycles in which a scheduler issues FFMAs, and shifts.
constexpr double fma_cycles(const Stages& stages) { return 4.0 * 32 * stage_warps * stages.iterations; }
constexpr double wasted_cycles(const Stages& stages) {
    return 1.0 * stages.wasted_slots * stage_warps * stages.iterations;
}

/// Cooperative: `time_steps` times every block watches its clock for `cycles`, and then waits for all others, as in
/// probe::grid_barriers(). At most one block an SM. arrivals [2]: zero before, and again afterwards.
void dependent_spins(std::int64_t cycles, int time_steps, int blocks, std::uint32_t* arrivals, cudaStream_t stream);

inline constexpr int unit_threads = 256;
/// `blocks` blocks whose warps do nothing but take 2 to the power of something, in the special-function unit.
/// out [blocks * unit_threads] floats.
void special_functions(int blocks, int iterations, float* out, cudaStream_t stream);
inline constexpr int special_functions_an_iteration = 4 * 32;
/// `blocks` blocks whose warps do nothing but hand words from lane to lane, in the load-store unit.
/// out [blocks * unit_threads].
void shuffles(int blocks, int iterations, std::uint32_t* out, cudaStream_t stream);
inline constexpr int shuffles_an_iteration = 4 * 32;
/// `blocks` blocks whose threads read shared memory `ways` words apart: of 32 banks a warp meets 32 / ways, so that an
/// access takes `ways` passes. out [blocks * unit_threads].
void bank_conflicts(int ways, int blocks, int iterations, std::uint32_t* out, cudaStream_t stream);
inline constexpr int conflict_loads = 8;  ///< by a thread in an iteration

/// `blocks` blocks add to all words of `words` round and round, `steps` times red_bytes each, neighbouring threads to
/// neighbouring words: L2 does the additions. `bytes` must be a multiple of red_bytes.
void red_adds(std::uint32_t* words, std::int64_t bytes, int blocks, int steps, cudaStream_t stream);
inline constexpr std::int64_t red_bytes = unit_threads * 4 * 4;  ///< by a block in a step: 4 words a thread

/// As many blocks as `multiprocessors` hold read `chunks` chunks past L1, going through `data` round and round. Each
/// takes the next chunk when it is ready, so that all end at once however unlike L2 treats their SMs; each thread
/// issues a load as soon as one of its l2_loads has come. (One block of 1024 threads an SM leaves a part of L2's
/// bandwidth unused.) `bytes` must be a multiple of l2_chunk_bytes; taken [2]: zero before, and again afterwards.
void read_l2_always(const void* data, std::int64_t bytes, int multiprocessors, int chunks, std::uint32_t* taken,
                    std::uint32_t* sums, cudaStream_t stream);
inline constexpr int l2_threads = 256, l2_loads = 4, l2_blocks_per_sm = 8;
inline constexpr std::int64_t l2_chunk_bytes = std::int64_t{l2_threads} * l2_loads * 16;

/// Nodes of a chain stand this many bytes apart, each on a DRAM access of its own.
inline constexpr int chase_stride_bytes = 64;
/// One cycle through all `nodes` (a power of two) in no order that a cache could use.
void make_chase(std::uint32_t* chain, std::uint32_t nodes, cudaStream_t stream);
/// As many warps as the device holds, in each of which one thread follows the chain for `loads` loads; each waits for
/// the one before it. out [chase_warps()].
void chase(const std::uint32_t* chain, std::uint32_t nodes, int loads, std::uint32_t* out, cudaStream_t stream);
int chase_warps();

/// One block of phase_warps warps an SM: FFMA in registers until `fma_cycles` of the SM's clock have passed, then one
/// thread of each warp follows the chain until `cycles` have. out [multiprocessors * phase_warps].
void phases(std::int64_t fma_cycles, std::int64_t cycles, const std::uint32_t* chain, std::uint32_t nodes, float* out,
            cudaStream_t stream);
inline constexpr int phase_warps = 32;

/// One block of `warps` warps an SM copies `bytes`, a multiple of 16; a thread has 4 vectors of 16 bytes in flight.
void copy_by_warps(void* to, const void* from, std::int64_t bytes, int warps, cudaStream_t stream);

/// Every thread reads tied_loads vectors of 16 bytes from L2 in a step, and executes tied_fmas(rounds_256ths) FMAs
/// meanwhile, on average, of which one takes each word that was read. All blocks together go through `bytes` of `data`
/// round and round, tied_bytes a block and step. out [blocks * unit_threads].
void fma_over_l2(const void* data, std::int64_t bytes, int blocks, int steps, int rounds_256ths, float* out,
                 cudaStream_t stream);
inline constexpr int tied_loads = 8;
inline constexpr std::int64_t tied_bytes = unit_threads * tied_loads * 16;
inline constexpr int tied_round = 64;  ///< FMAs of a round
constexpr double tied_fmas(int rounds_256ths) { return 4 * tied_loads + tied_round * rounds_256ths / 256.0; }

/// `blocks` blocks that wait long enough to be spread over all SMs set seen[%smid] to 1.
void note_sms(unsigned* seen, int blocks, cudaStream_t stream);

}  // namespace kbench::cuda::known
