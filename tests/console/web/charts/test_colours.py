"""The colours of charts: seen on both grounds, and told apart by those who see few colours."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from roundhouse.console.web.charts.layout import LOOKS
from roundhouse.console.web.rendering import STATIC

TOKENS = (STATIC / "css" / "tokens.css").read_text()
# What is left of colours (linear RGB), after Machado, Oliveira and Fernandes 2009, severity 1.
SIGHT = {
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}

Colour = tuple[float, float, float]


def token(name: str, theme: int) -> Colour:
    found = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", TOKENS)
    assert found, name
    parts = (int(found[theme + 1][at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return red, green, blue


def luminance(colour: Colour) -> float:
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def lab(colour: Colour) -> Colour:
    red, green, blue = (max(part, 0.0) for part in colour)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("theme", [0, 1])
def test_every_series_stands_out_from_its_ground(theme: int) -> None:
    ground = luminance(token("ground-panel", theme))
    for look in range(1, LOOKS + 1):
        light, dark = sorted((luminance(token(f"look-{look}", theme)), ground), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, look


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("sight", SIGHT)
def test_no_two_series_look_alike_to_anybody(sight: str, theme: int) -> None:
    seen = {}
    for look in range(1, LOOKS + 1):
        colour = token(f"look-{look}", theme)
        red, green, blue = (sum(part * of for part, of in zip(row, colour, strict=True)) for row in SIGHT[sight])
        seen[look] = lab((red, green, blue))
    for (one, first), (other, second) in combinations(seen.items(), 2):
        distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5
        assert distance > 20, (one, other)
