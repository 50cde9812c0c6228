#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links of pages that lead nowhere: to no file, or to no heading of a page.

links.py PAGE...
"""
import os
import pathlib
import re
import sys


def text(page):
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", pathlib.Path(page).read_text(encoding="utf-8"), flags=re.S | re.M)


def headings(page):
    """The names by which headings can be reached."""
    for heading in re.findall(r"^#+ (.*)$", text(page), re.M):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


for page in sys.argv[1:]:
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        name, _, heading = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
        if re.match(r"[a-z]+:", link):
            continue
        if not os.path.exists(target):
            print(f"{page}: {link}: no such file")
        elif heading and target.endswith(".md") and heading not in headings(target):
            print(f"{page}: {link}: no such heading")
