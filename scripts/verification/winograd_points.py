#!/usr/bin/env python3
"""How far minimal filtering errs in fp32, by the points of its transforms, compared with plain sums in fp32.

An emulation of kernels/convolution/dgrad_winograd.cu in NumPy: 11 taps in three groups of 4 (the last tap is 0), four
neighbouring sums at once, 7 points, the last of which is infinity. Operands are normal; 352 rows of taps, as the second
convolution of Deep Speech 2 has for a class of rows of its dx, are 3,872 terms a sum. Prints for each choice of points the
root mean square of the errors over that of the sums, mean of a few seeds, and over the plain sums' error. Needs NumPy.
"""

import functools
from fractions import Fraction

import numpy as np

TAPS, GROUPS, GROUP_TAPS, TILE = 11, 3, 4, 4
POINTS = TILE + GROUP_TAPS - 1
LINES, TILES, SEEDS = 352, 16, 48
HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
KERNELS = (0, 1, -1, HALF, -HALF, -2)  # as in dgrad_winograd.cu
CHOICES = [
    KERNELS,
    (0, 1, -1, HALF, -HALF, 2),
    (0, 1, -1, 2, -2, HALF),
    (0, 1, -1, 2, -2, -HALF),
    (0, 1, -1, HALF, -2, Fraction(3, 2)),
    (0, 1, -1, HALF, -HALF, Fraction(3, 2)),
    (0, HALF, -HALF, Fraction(3, 2), -Fraction(3, 2), 1),
    (0, Fraction(2, 3), -Fraction(2, 3), Fraction(3, 2), -Fraction(3, 2), 1),
    (0, HALF, -HALF, 2, -2, 1),
    (0, 1, -1, HALF, -2, THIRD),
    (0, 1, -1, 2, -2, 3),
]
Matrix = list[list[Fraction]]


def transforms(points: tuple[int | Fraction, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices for inputs [points, 7], for taps [points, 4] and back [4, points]. A product of polynomials is found again
    from its values at the points; sums of products are that, transposed. Rows of the inputs' are whole numbers."""

    def values(coefficients: int) -> Matrix:
        finite = [[Fraction(p) ** power for power in range(coefficients)] for p in points]
        return [*finite, [Fraction(int(power == coefficients - 1)) for power in range(coefficients)]]

    inverse = np.linalg.inv(np.array(values(POINTS), float))  # near enough to find its fractions again
    of_inputs = [[Fraction(value).limit_denominator(10_000) for value in column] for column in inverse.T]
    of_taps = values(GROUP_TAPS)
    for i, row in enumerate(of_inputs):
        scale = Fraction(np.lcm.reduce([value.denominator for value in row]).item())
        of_inputs[i] = [value * scale for value in row]
        of_taps[i] = [value / scale for value in of_taps[i]]
    back = [list(column) for column in zip(*values(TILE), strict=True)]
    as_array = lambda matrix: np.array([[float(value) for value in row] for row in matrix])  # noqa: E731
    return as_array(of_inputs), as_array(of_taps), as_array(back)


def in_fp32(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """matrix [n, k] times vectors [k, ...], summed in order."""
    total = np.zeros((len(matrix), *vectors.shape[1:]), np.float32)
    for k, vector in enumerate(vectors):
        total = total + matrix[:, k].astype(np.float32).reshape(-1, *[1] * (vectors.ndim - 1)) * vector
    return total


@functools.cache
def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and taps, their sums in fp64, and plain sums in fp32."""
    random = np.random.default_rng(seed)
    positions = TILES * TILE
    x = random.standard_normal((LINES, positions + GROUPS * GROUP_TAPS), dtype=np.float32)
    taps = np.zeros((LINES, GROUPS * GROUP_TAPS), np.float32)
    taps[:, :TAPS] = random.standard_normal((LINES, TAPS), dtype=np.float32)
    truth, plain = np.zeros(positions), np.zeros(positions, np.float32)
    for line, row in zip(x, taps, strict=True):
        for tap in range(TAPS):
            truth += line[tap : tap + positions].astype(float) * float(row[tap])
            plain = plain + line[tap : tap + positions] * row[tap]
    return x, taps, truth, plain


def errors(points: tuple[int | Fraction, ...], seed: int) -> tuple[float, float]:
    """The errors of plain sums and of minimal filtering."""
    x, taps, truth, plain = drawn(seed)
    of_inputs, of_taps, back = transforms(points)
    sums = np.zeros((POINTS, TILES), np.float32)
    for line, row in zip(x, taps, strict=True):
        for group in range(GROUPS):
            first = group * GROUP_TAPS
            tiles = np.stack([line[first + j : first + j + TILES * TILE : TILE] for j in range(POINTS)])
            turned = in_fp32(of_taps, row[first : first + GROUP_TAPS, None])
            sums = sums + in_fp32(of_inputs, tiles) * turned
    filtered = in_fp32(back, sums).T.ravel()
    size = np.sqrt(np.mean(truth**2))
    return tuple(float(np.sqrt(np.mean((made - truth) ** 2)) / size) for made in (plain, filtered))


def main() -> None:
    print(f"numpy {np.__version__}; sums of {LINES * TAPS} terms, {TILES * TILE} of each of {SEEDS} seeds\n")
    print(f"{'points, and infinity':<32}{'plain':>10}{'filtered':>10}{'times':>7}")
    for points in CHOICES:
        plain, filtered = np.mean([errors(points, seed) for seed in range(SEEDS)], axis=0)
        name = ", ".join(str(point) for point in points) + (" *" if points == KERNELS else "")
        print(f"{name:<32}{plain:10.1e}{filtered:10.1e}{filtered / plain:7.2f}", flush=True)
    print("\n* those of dgrad_winograd.cu")


if __name__ == "__main__":
    main()
