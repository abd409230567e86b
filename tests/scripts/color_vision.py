"""How far apart two colours look, to readers who see all of them and to those who lack a kind of cone.

    difference("#0072b2", "#d55e00", "deuteranopia")  # 56.6
"""

import math

# G. M. Machado et al., A Physiologically-based Model for Simulation of Color Vision Deficiency (IEEE TVCG 2009): severity
# 1.0, for linear RGB.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}
# IEC 61966-2-1: linear sRGB to XYZ, under D65.
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1, 1.08883)


def product(matrix: tuple, vector: list[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(color: str, vision: str = "normal") -> tuple[float, float, float]:
    """CIELAB of "#rrggbb" as that reader sees it."""
    channels = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    seen = [min(1, max(0, c)) for c in product(VISION[vision], linear)]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
               for t in (value / white for value, white in zip(product(XYZ, seen), WHITE)))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def ciede2000(one: tuple, other: tuple) -> float:
    """The difference of two CIELAB colours; G. Sharma et al., The CIEDE2000 Color-Difference Formula (2005), with its names."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    chroma_7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = 0.5 * (1 - math.sqrt(chroma_7 / (chroma_7 + 25 ** 7)))
    c1, c2 = math.hypot(a1 * (1 + g), b1), math.hypot(a2 * (1 + g), b2)
    h1, h2 = (math.degrees(math.atan2(b, a * (1 + g))) % 360 for a, b in ((a1, b1), (a2, b2)))
    apart = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    delta_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(apart / 2))
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + apart / 2 if c1 * c2 else h1 + h2
    cosine = lambda degrees: math.cos(math.radians(degrees))  # noqa: E731
    t = 1 - 0.17 * cosine(hue - 30) + 0.24 * cosine(2 * hue) + 0.32 * cosine(3 * hue + 6) - 0.20 * cosine(4 * hue - 63)
    s_l = 1 + 0.015 * (lightness - 50) ** 2 / math.sqrt(20 + (lightness - 50) ** 2)
    s_c, s_h = 1 + 0.045 * chroma, 1 + 0.015 * chroma * t
    turn = 60 * math.exp(-(((hue % 360 - 275) / 25) ** 2))
    r_t = -2 * math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7)) * math.sin(math.radians(turn))
    light, color, tint = (l2 - l1) / s_l, (c2 - c1) / s_c, delta_h / s_h
    return math.sqrt(light ** 2 + color ** 2 + tint ** 2 + r_t * color * tint)


def difference(one: str, other: str, vision: str = "normal") -> float:
    return ciede2000(lab(one, vision), lab(other, vision))
