// Where the persistent LSTM keeps what: index arithmetic for the kernel, its launcher and a test on the host.
#pragma once

namespace kbench::cuda::persistent {

inline constexpr int units = 16;        ///< of a block
inline constexpr int rows = 4 * units;  ///< of weight_hh in a block: M of its product
inline constexpr int warpgroups = 4;    ///< each has a quarter of the columns of weight_hh, K
inline constexpr int warpgroup_threads = 128, threads = warpgroups * warpgroup_threads;
inline constexpr int depth = 16;  ///< columns of one instruction

/// Row of the product that is a unit's gate: a unit's four sums lie side by side.
constexpr int row_of(int unit, int gate) { return 4 * unit + gate; }
constexpr int unit_of(int row) { return row / 4; }
constexpr int gate_of(int row) { return row % 4; }

/// Element of h where unit k of sequence n stands, of `columns` sequences: in global as in shared memory. Eight units
/// of eight sequences are a core matrix of wgmma, 128 bytes without a gap; a block's units are contiguous, too.
constexpr int h_offset(int k, int n, int columns) { return (k / 8 * columns + n) * 8 + k % 8; }
/// Bytes from a core matrix to the next along k, and to that of the next eight sequences.
constexpr int leading_bytes(int columns) { return columns * 16; }
constexpr int stride_bytes = 128;

/// Element of a warpgroup's product [columns, rows], rows side by side. 68 for 64: the writes of a warp (8 rows of each
/// fourth of 8 columns) and its reads (the gates of 16 units of two columns) meet no bank twice.
inline constexpr int sums_stride = rows + 4;
constexpr int sum_offset(int row, int column) { return column * sums_stride + row; }

/// Of a warp's fragment of A for one instruction, the four registers of two neighbouring elements each: row within the
/// warp's 16, and column within `depth` (PTX ISA, "Register fragments and shared memory matrix layouts").
constexpr int fragment_row(int lane, int index) { return lane / 4 + index % 2 * 8; }
constexpr int fragment_column(int lane, int index) { return lane % 4 * 2 + index / 2 * 8; }
/// Of its sums [64, columns]: row within the warp's 16 and column, by index of the thread's columns / 2 sums.
constexpr int sum_row(int lane, int index) { return lane / 4 + index % 4 / 2 * 8; }
constexpr int sum_column(int lane, int index) { return index / 4 * 8 + lane % 4 * 2 + index % 2; }

/// Slots of h in global memory. Counted: h[t + 1] takes the place of h[t - 1], and a block writes it after it has read
/// all of h[t], which others wrote after they had read h[t - 1]. Polled: see the kernel.
inline constexpr int counted_slots = 2, polled_slots = 16;

/// A counter for each direction's quarter of K, each in a line of its own.
inline constexpr int counter_bytes = 128, counters_bytes = 2 * warpgroups * counter_bytes;

/// What each polled word of h is until it is written: no h is, since a NaN is rounded to 0x7fff, in bf16 as well.
inline constexpr unsigned missing = 0xffffffff;

/// Polled: sequences at most, and turns whose sums are kept apart.
inline constexpr int polled_batch = 128, sum_buffers = 4;
/// Polled: whether all warpgroups, not only a tile's owners, wait for all sums of its turn: in every second turn, and
/// in the last of a step. Thus who writes sums has been at a barrier after which those of sum_buffers turns before were
/// read, and each of two barriers is free again.
constexpr bool all_wait(int tile, bool ends_step) { return tile % 2 == 1 || ends_step; }

/// Bytes of shared memory: h and, for each warpgroup, its sums.
constexpr int counted_bytes(int k_steps, int columns) {
    const int h = warpgroups * k_steps * depth * columns * 2, sums = warpgroups * columns * sums_stride * 4;
    return h + sums;
}
/// Polled: h of two turns, sums of sum_buffers, and c of all tiles.
constexpr int polled_bytes(int k_steps, int columns, int tiles) {
    const int h = warpgroups * k_steps * depth * columns * 2, sums = warpgroups * columns * sums_stride * 4;
    return 2 * h + sum_buffers * sums + tiles * columns * units * 4;
}

}  // namespace kbench::cuda::persistent
