#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Draws what the program day has written down: memory, descriptors, the median ping, over time.

usage: plot.py FIGURES SVG
"""
import sys

ROWS = (("alive", "sessions alive"), ("made", "sessions made"), ("KiB", "heap, KiB"),
        ("fds", "descriptors"), ("p50", "median ping, us"))
WIDTH, HEIGHT, LEFT, GAP = 640, 90, 150, 26


def figures(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f]
    start = next(i for i, l in enumerate(lines) if l[0] == "second")
    rows = [[float(v) for v in l] for l in lines[start + 1:] if len(l) == len(lines[start])]
    return {name: [r[i] for r in rows] for i, name in enumerate(lines[start])}


def thin(values, most=WIDTH):
    """The mean of each pixel's seconds."""
    n = max(1, -(-len(values) // most))
    return [sum(values[i:i + n]) / len(values[i:i + n]) for i in range(0, len(values), n)]


def curve(values, top, label, out):
    values = thin(values)
    most = max(values) or 1
    step = WIDTH / max(1, len(values) - 1)
    points = " ".join(f"{LEFT + i * step:.1f},{top + HEIGHT * (1 - v / most):.1f}"
                      for i, v in enumerate(values))
    out.append(f'<text x="4" y="{top + HEIGHT / 2:.0f}">{label}</text>')
    out.append(f'<text x="4" y="{top + HEIGHT / 2 + 14:.0f}">0 to {most:.0f}</text>')
    out.append(f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" '
               'stroke="#bbb"/>')
    out.append(f'<polyline points="{points}" fill="none" stroke="#036"/>')


def main():
    data = figures(sys.argv[1])
    height = len(ROWS) * (HEIGHT + GAP) + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" '
           f'height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{LEFT + WIDTH + 10}" height="{height}" fill="#fff"/>']
    for i, (name, label) in enumerate(ROWS):
        curve(data[name], GAP / 2 + i * (HEIGHT + GAP), label, out)
    out.append(f'<text x="{LEFT}" y="{height - 8}">0 to {data["second"][-1] + 1:.0f} s</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


main()
