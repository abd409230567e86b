// Tiles that stay in L1 are summed, then a block's tiles in order, then the blocks in order, whichever thread summed
// them. A tile's variance is taken around its own mean, and two are merged as in Chan, Golub and LeVeque (American
// Statistician 37(3), 1983). So a mean far from zero costs no accuracy, and x is read from memory once.
#include "cpu/native/batchnorm.h"

#include <algorithm>
#include <cmath>

#include "cpu/native/rows.h"
#include "cpu/vector.h"

namespace kbench::cpu {
namespace {

/// Columns and rows per tile where channels are columns: 16 KB in fp32.
constexpr std::int64_t strip = 64, tile_rows = 64;

/// A count of elements, their mean and the sum of squares around it; or, backward, the sums of dy and of dy n.
struct Moments {
    double count = 0, mean = 0, squares = 0;

    void merge(const Moments& other) {
        if (other.count == 0) return;
        const double all = count + other.count, distance = other.mean - mean;
        mean += distance * (other.count / all);
        squares += other.squares + distance * distance * (count * (other.count / all));
        count = all;
    }
};
struct Sums {
    double dy = 0, dyn = 0;
    void merge(const Sums& other) {
        dy += other.dy;
        dyn += other.dyn;
    }
};

/// How a channel, or 64 of them, is cut into blocks that threads take: [block][channel] of the workspace.
struct Pieces {
    std::int64_t blocks, strips;

    explicit Pieces(const BatchNorm& op)
        : blocks(op.channels > 0 ? RowBlocks(op.rows / (op.channels * op.height)).count : RowBlocks(op.rows).count),
          strips(op.channels > 0 ? op.channels : (op.width + strip - 1) / strip) {}
};

/// Calls of_row(channel, row) -> Part for every row of images, or of_tile(first_column, columns, first_row, last_row,
/// Part*) for tiles of columns, and merges their results into whole[channel], which is in `partial`.
template <class Part, class OfRow, class OfTile>
const Part* reduce(const BatchNorm& op, void* workspace, const OfRow& of_row, const OfTile& of_tile) {
    const Pieces pieces(op);
    const std::int64_t channels = op.channel_count();
    Part* partial = static_cast<Part*>(workspace);
    const std::int64_t images = op.channels > 0 ? op.rows / (op.channels * op.height) : 0;
    const RowBlocks blocks(op.channels > 0 ? images : op.rows);
#pragma omp parallel for schedule(static)
    for (std::int64_t task = 0; task < pieces.blocks * pieces.strips; ++task) {
        const std::int64_t block = task / pieces.strips, piece = task % pieces.strips;
        if (op.channels > 0) {
            Part all{};
            for (std::int64_t n = blocks.begin(block); n < blocks.begin(block + 1); ++n)
                for (std::int64_t h = 0; h < op.height; ++h)
                    all.merge(of_row(piece, (n * op.channels + piece) * op.height + h));
            partial[block * channels + piece] = all;
            continue;
        }
        const std::int64_t first = piece * strip, columns = std::min(strip, op.width - first);
        Part all[strip] = {};
        for (std::int64_t row = blocks.begin(block); row < blocks.begin(block + 1); row += tile_rows) {
            Part tile[strip];
            of_tile(first, columns, row, std::min(row + tile_rows, blocks.begin(block + 1)), tile);
            for (std::int64_t c = 0; c < columns; ++c) all[c].merge(tile[c]);
        }
        std::copy_n(all, columns, partial + block * channels + first);
    }
#pragma omp parallel for schedule(static)
    for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t block = 1; block < pieces.blocks; ++block)
            partial[channel].merge(partial[block * channels + channel]);
    return partial;
}

/// Calls to(row, first column, columns) for all rows: in images for `op.width` columns at a time, else for tiles.
template <class Row>
void for_each_row(const BatchNorm& op, const Row& of_row) {
    if (op.channels > 0) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < op.rows; ++row) of_row(row, row + 1, std::int64_t{0}, op.width);
        return;
    }
    const std::int64_t strips = (op.width + strip - 1) / strip, tiles = (op.rows + tile_rows - 1) / tile_rows;
#pragma omp parallel for schedule(static)
    for (std::int64_t task = 0; task < tiles * strips; ++task) {
        const std::int64_t first = task % strips * strip, begin = task / strips * tile_rows;
        of_row(begin, std::min(op.rows, begin + tile_rows), first, std::min(strip, op.width - first));
    }
}

}  // namespace

std::size_t batch_norm_workspace(DataType, const BatchNorm& op) {
    return static_cast<std::size_t>(Pieces(op).blocks * op.channel_count()) * std::max(sizeof(Moments), sizeof(Sums));
}

void batch_norm_in_training(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                            Out<"running_mean"> running_mean, Out<"running_var"> running_var, Out<"mean"> mean,
                            Out<"rstd"> rstd, Out<"out"> out, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const T* from = static_cast<const T*>(x);
        const std::int64_t width = op.width;
        const auto of_row = [&](std::int64_t, std::int64_t row) {
            const T* elements = from + row * width;
            Moments moments{static_cast<double>(width)};
            vectorised([&, elements] {
                const C center =
                    sum_over<C>(width, [=](std::int64_t i) { return load(elements[i]); }) / static_cast<C>(width);
                // The part of the mean that its own rounding has lost.
                const C rest = sum_over<C>(width, [=](std::int64_t i) { return load(elements[i]) - center; }) /
                               static_cast<C>(width);
                moments.mean = static_cast<double>(center) + static_cast<double>(rest);
                moments.squares = static_cast<double>(sum_over<C>(width,
                                                                  [=](std::int64_t i) {
                                                                      const C distance = load(elements[i]) - center;
                                                                      return distance * distance;
                                                                  })) -
                                  static_cast<double>(rest) * static_cast<double>(rest) * moments.count;
            });
            return moments;
        };
        const auto of_tile = [&](std::int64_t first, std::int64_t columns, std::int64_t begin, std::int64_t end,
                                 Moments* moments) {
            C centers[strip] = {}, rests[strip] = {}, squares[strip] = {};
            const C share = C(1) / static_cast<C>(end - begin);
            vectorised([&] {
                for (std::int64_t row = begin; row < end; ++row) {
                    const T* elements = from + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i) centers[i] += load(elements[i]);
                }
                for (std::int64_t i = 0; i < columns; ++i) centers[i] *= share;
                for (std::int64_t row = begin; row < end; ++row) {
                    const T* elements = from + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i) {
                        const C distance = load(elements[i]) - centers[i];
                        rests[i] += distance;
                        squares[i] += distance * distance;
                    }
                }
            });
            for (std::int64_t i = 0; i < columns; ++i) {
                const double count = static_cast<double>(end - begin), rest = static_cast<double>(rests[i]) / count;
                moments[i] = {count, static_cast<double>(centers[i]) + rest,
                              static_cast<double>(squares[i]) - rest * rest * count};
            }
        };
        const auto* moments = reduce<Moments>(op, workspace, of_row, of_tile);
        C *means = static_cast<C*>(mean), *rstds = static_cast<C*>(rstd);
        for (std::int64_t c = 0; c < op.channel_count(); ++c) {
            const double variance = std::max(0.0, moments[c].squares / moments[c].count);
            means[c] = static_cast<C>(moments[c].mean);
            rstds[c] = static_cast<C>(1 / std::sqrt(variance + op.epsilon));
            const auto move = [&](void* running, double batch) {
                T& to = static_cast<T*>(running)[c];
                const auto before = static_cast<double>(load(to));
                store(to, static_cast<C>(before + op.momentum * (batch - before)));
            };
            move(running_mean, moments[c].mean);
            move(running_var, variance * (moments[c].count / (moments[c].count - 1)));
        }
        const T *w = static_cast<const T*>(weight), *b = static_cast<const T*>(bias);
        for_each_row(op, [&](std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t columns) {
            if (op.channels > 0) {
                const std::int64_t c = begin / op.height % op.channels;
                const C center = means[c], scale = load(w[c]) * rstds[c], shift = load(b[c]);
                const T* elements = from + begin * width;
                T* to = static_cast<T*>(out) + begin * width;
                vectorised([=] {
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i)
                        store(to[i], (load(elements[i]) - center) * scale + shift);
                });
                return;
            }
            C scales[strip], shifts[strip];
            for (std::int64_t i = 0; i < columns; ++i) {
                scales[i] = load(w[first + i]) * rstds[first + i];
                shifts[i] = load(b[first + i]);
            }
            vectorised([&, centers = means + first] {
                for (std::int64_t row = begin; row < end; ++row) {
                    const T* elements = from + row * width + first;
                    T* to = static_cast<T*>(out) + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i)
                        store(to[i], (load(elements[i]) - centers[i]) * scales[i] + shifts[i]);
                }
            });
        });
    });
}

void batch_norm_gradient(DataType type, const BatchNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"mean"> mean, In<"rstd"> rstd, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace) {
    with_element(type, [&]<class T>(T) {
        using C = Compute<T>;
        const T *in = static_cast<const T*>(x), *gradient = static_cast<const T*>(dy);
        const C *means = static_cast<const C*>(mean), *rstds = static_cast<const C*>(rstd);
        const std::int64_t width = op.width;
        const auto of_row = [&](std::int64_t channel, std::int64_t row) {
            const T *elements = in + row * width, *g = gradient + row * width;
            const C center = means[channel], scale = rstds[channel];
            Sums sums;
            vectorised([&, elements, g, center, scale] {
                sums.dy = static_cast<double>(sum_over<C>(width, [=](std::int64_t i) { return load(g[i]); }));
                sums.dyn = static_cast<double>(sum_over<C>(
                    width, [=](std::int64_t i) { return load(g[i]) * ((load(elements[i]) - center) * scale); }));
            });
            return sums;
        };
        const auto of_tile = [&](std::int64_t first, std::int64_t columns, std::int64_t begin, std::int64_t end,
                                 Sums* sums) {
            C of_dy[strip] = {}, of_dyn[strip] = {};
            vectorised([&, centers = means + first, scales = rstds + first] {
                for (std::int64_t row = begin; row < end; ++row) {
                    const T *elements = in + row * width + first, *g = gradient + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i) {
                        of_dy[i] += load(g[i]);
                        of_dyn[i] += load(g[i]) * ((load(elements[i]) - centers[i]) * scales[i]);
                    }
                }
            });
            for (std::int64_t i = 0; i < columns; ++i)
                sums[i] = {static_cast<double>(of_dy[i]), static_cast<double>(of_dyn[i])};
        };
        const auto* sums = reduce<Sums>(op, workspace, of_row, of_tile);
        for (std::int64_t c = 0; c < op.channel_count(); ++c) {
            const auto add = [&](void* to, double sum) {
                T& at = static_cast<T*>(to)[c];
                store(at, static_cast<C>(op.accumulates ? sum + static_cast<double>(load(at)) : sum));
            };
            add(dw, sums[c].dyn);
            add(db, sums[c].dy);
        }
        // dx = scale (dy - mean dy - (x - mean) through), through = rstd mean(dy n).
        const T* w = static_cast<const T*>(weight);
        const double share = 1 / static_cast<double>(op.count());
        const auto scale_of = [&](std::int64_t c) { return load(w[c]) * rstds[c]; };
        const auto mean_of = [&](std::int64_t c) { return static_cast<C>(sums[c].dy * share); };
        const auto through_of = [&](std::int64_t c) {
            return static_cast<C>(sums[c].dyn * share * static_cast<double>(rstds[c]));
        };
        for_each_row(op, [&](std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t columns) {
            if (op.channels > 0) {
                const std::int64_t c = begin / op.height % op.channels;
                const C center = means[c], scale = scale_of(c), mean_dy = mean_of(c), through = through_of(c);
                const T *elements = in + begin * width, *g = gradient + begin * width;
                T* to = static_cast<T*>(dx) + begin * width;
                vectorised([=] {
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i)
                        store(to[i], scale * (load(g[i]) - mean_dy - (load(elements[i]) - center) * through));
                });
                return;
            }
            C scales[strip], mean_dys[strip], throughs[strip];
            for (std::int64_t i = 0; i < columns; ++i) {
                scales[i] = scale_of(first + i);
                mean_dys[i] = mean_of(first + i);
                throughs[i] = through_of(first + i);
            }
            vectorised([&, centers = means + first] {
                for (std::int64_t row = begin; row < end; ++row) {
                    const T *elements = in + row * width + first, *g = gradient + row * width + first;
                    T* to = static_cast<T*>(dx) + row * width + first;
#pragma omp simd
                    for (std::int64_t i = 0; i < columns; ++i)
                        store(to[i],
                              scales[i] * (load(g[i]) - mean_dys[i] - (load(elements[i]) - centers[i]) * throughs[i]));
                }
            });
        });
    });
}

}  // namespace kbench::cpu
