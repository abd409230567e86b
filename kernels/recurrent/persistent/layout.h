// Where the persistent LSTM stores what: index arithmetic for the kernel, its launcher and a test on the host.
#pragma once

namespace kbench::cuda::persistent {

inline constexpr int units = 16;        ///< per block
inline constexpr int rows = 4 * units;  ///< rows of weight_hh per block: M of its product
inline constexpr int warpgroups = 4;    ///< each has a quarter of the columns of weight_hh, K
inline constexpr int warpgroup_threads = 128, threads = warpgroups * warpgroup_threads;
inline constexpr int depth = 16;  ///< columns per instruction

/// Row of the product for a unit's gate; a unit's four sums are neighbours.
constexpr int row_of(int unit, int gate) { return 4 * unit + gate; }
constexpr int unit_of(int row) { return row / 4; }
constexpr int gate_of(int row) { return row % 4; }

/// Index of unit k of sequence n in h with `columns` sequences, in global and in shared memory. Eight units of eight
/// sequences form a core matrix of wgmma, 128 contiguous bytes; a block's units are contiguous, too.
constexpr int h_offset(int k, int n, int columns) { return (k / 8 * columns + n) * 8 + k % 8; }
/// Bytes from a core matrix to the next along k, and to the next eight sequences.
constexpr int leading_bytes(int columns) { return columns * 16; }
constexpr int stride_bytes = 128;

/// Index into a warpgroup's product [columns, rows], with rows as neighbours. The pitch of 68 instead of 64 avoids bank
/// conflicts in a warp's writes (8 rows of every fourth of 8 columns) and reads (gates of 16 units of two columns).
inline constexpr int sums_stride = rows + 4;
constexpr int sum_offset(int row, int column) { return column * sums_stride + row; }

/// Row (within the warp's 16) and column (within `depth`) of register `index` of a warp's fragment of A, which holds
/// two neighbouring elements (PTX ISA, "Register fragments and shared memory matrix layouts").
constexpr int fragment_row(int lane, int index) { return lane / 4 + index % 2 * 8; }
constexpr int fragment_column(int lane, int index) { return lane % 4 * 2 + index / 2 * 8; }
/// Row (within the warp's 16) and column of the thread's sum `index`, one of columns / 2 of [64, columns].
constexpr int sum_row(int lane, int index) { return lane / 4 + index % 4 / 2 * 8; }
constexpr int sum_column(int lane, int index) { return index / 4 * 8 + lane % 4 * 2 + index % 2; }

/// Slots of h in global memory. Counted: h[t + 1] replaces h[t - 1]. A block writes it after it has read all of h[t],
/// which the others wrote after they had read h[t - 1]. Polled: see the kernel.
inline constexpr int counted_slots = 2, polled_slots = 16;

/// One counter per direction and quarter of K, each in a line of its own.
inline constexpr int counter_bytes = 128, counters_bytes = 2 * warpgroups * counter_bytes;

/// A polled word of h that is not written yet. No h looks like this, because NaN is rounded to 0x7fff, in bf16 as well.
inline constexpr unsigned missing = 0xffffffff;

/// Polled: the most sequences, and the number of turns whose sums are kept apart.
inline constexpr int polled_batch = 128, sum_buffers = 4;
/// Polled: whether all warpgroups, not only a tile's owners, wait for all sums of its turn. They do in every second
/// turn and in the last of a step. So a warpgroup that writes sums has passed a barrier after which the sums of
/// sum_buffers turns before were read, and each of two barriers is free again.
constexpr bool all_wait(int tile, bool ends_step) { return tile % 2 == 1 || ends_step; }

/// Bytes of shared memory: h, and the sums of each warpgroup.
constexpr int counted_bytes(int k_steps, int columns) {
    const int h = warpgroups * k_steps * depth * columns * 2, sums = warpgroups * columns * sums_stride * 4;
    return h + sums;
}
/// Polled: h of two turns, sums of sum_buffers turns, and c of all tiles.
constexpr int polled_bytes(int k_steps, int columns, int tiles) {
    const int h = warpgroups * k_steps * depth * columns * 2, sums = warpgroups * columns * sums_stride * 4;
    return 2 * h + sum_buffers * sums + tiles * columns * units * 4;
}

}  // namespace kbench::cuda::persistent
