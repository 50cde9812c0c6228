#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the tests do not reach, compared with what is known and has a reason.

usage: report.py EXPORT REASONS [--list]

EXPORT is what `llvm-cov export` says.  REASONS is a folder; it has a file for each folder of src.  A line
there: file, function, outcome, condition, reason;
tabs in between.  The outcome is "true" or "false" for one that never occurs, or "alone" for a condition
that is never shown to decide on its own (MC/DC).  A condition that occurs more than once in its function
has its number behind it: "p #2".  In the files of REQUIRED each uncovered outcome has to be listed, and
nothing may be listed that is covered; "-" in place of an outcome is for what some runs cover by chance.  --list prints what is not listed, in the form of REASONS.
"""

import collections
import json
import os
import re
import sys

REQUIRED = re.compile(
    r"^src/((ddp|rdmap|negotiate|sctp|mpa_tcp)/|sctp_ddp/(?!backend/kernel/))")
# The rest of the wires, and all of src: shares of branches taken and of conditions shown, in per cent,
# below which nothing may fall again.  They differ by a few tenths from run to run.
WIRES = re.compile(
    r"^src/(ddp|mpa_tcp|rdmap|negotiate|sctp|sctp_ddp)/(parts/|send/)?[a-z_0-9]*\.[ch]$")
FLOORS = {"wires": (99.5, 99), "src": (97.8, 93.8)}
# Linux's own SCTP is not in every kernel: the guest's run reaches these, and they are shown apart.
GUEST = re.compile(r"^src/(sctp_ddp/backend/kernel/|conform/peer/sctp_kernel)")
BRANCH, MCDC_BRANCH = 4, 6

Place = collections.namedtuple("Place", "file line column end_line end_column")


class Source:
    def __init__(self):
        self.files = {}

    def text(self, place):
        if place.file not in self.files:
            with open(place.file, encoding="utf-8") as f:
                self.files[place.file] = f.read().split("\n")
        lines = self.files[place.file][place.line - 1:place.end_line]
        lines[-1] = lines[-1][:place.end_column - 1]
        lines[0] = lines[0][place.column - 1:]
        return " ".join(" ".join(lines).split())


def place_of(names, row, file_id):
    return Place(names[file_id], *row[:4])


def read(export):
    """Counts of each condition, and whether it was seen to decide, by function and place."""
    with open(export, encoding="utf-8") as f:
        data = json.load(f)["data"][0]
    counts = collections.defaultdict(lambda: [0, 0])
    alone = collections.defaultdict(bool)
    for fn in data["functions"]:
        names = [os.path.relpath(n) for n in fn["filenames"]]
        name = fn["name"].split(":")[-1]
        conditions = []
        for row in fn["branches"]:
            key = (names[0], name, place_of(names, row, row[6]))
            counts[key][0] += row[4]
            counts[key][1] += row[5]
            if row[8] == MCDC_BRANCH:
                conditions.append(key)
        for row in fn["mcdc_records"]:
            inside = sorted((k for k in conditions if within(k[2], row)), key=lambda k: k[2])
            if len(inside) != len(row[6]):
                inside = [k for k in inside if k[2].file == names[0]]
            for key, shown in zip(inside, row[6]):
                alone[key] |= shown
    return counts, alone


def within(place, row):
    return (place.line, place.column) >= (row[0], row[1]) and \
        (place.end_line, place.end_column) <= (row[2], row[3])


class Tally:
    def __init__(self):
        self.branches = self.taken = self.conditions = self.shown = 0

    def add(self, other):
        self.branches += other.branches
        self.taken += other.taken
        self.conditions += other.conditions
        self.shown += other.shown

    def shares(self):
        return (100 * self.taken / self.branches, 100 * self.shown / self.conditions)

    def line(self, name):
        def share(part, whole):
            return f"{100 * part / whole:6.2f} %" if whole else "       -"
        return (f"{share(self.taken, self.branches)} of {self.branches:5} branches "
                f"{share(self.shown, self.conditions)} of {self.conditions:5} conditions  {name}")


def measure(export):
    counts, alone = read(export)
    source = Source()
    tallies = collections.defaultdict(Tally)
    missing = {}
    seen = collections.Counter()
    for key in sorted(counts):
        file, function, place = key
        if not file.startswith("src/"):
            continue
        true, false = counts[key]
        t = tallies[file]
        what = source.text(place)
        seen[file, function, what] += 1
        if seen[file, function, what] > 1:
            what += f" #{seen[file, function, what]}"
        t.branches += 2
        t.taken += bool(true) + bool(false)
        if not true:
            missing[file, function, "true", what] = place.line
        if not false:
            missing[file, function, "false", what] = place.line
        if key in alone:
            t.conditions += 1
            t.shown += alone[key]
            if true and false and not alone[key]:
                missing[file, function, "alone", what] = place.line
    return tallies, missing


def read_reasons(path, reasons):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#") or not line.strip():
                continue
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 5 or not parts[4].strip():
                sys.exit(f"{path}:{number}: file, function, outcome, condition and reason are needed")
            if tuple(parts[:4]) in reasons:
                sys.exit(f"{path}:{number}: is there twice")
            reasons[tuple(parts[:4])] = parts[4]


def main():
    export, path = sys.argv[1:3]
    tallies, missing = measure(export)
    reasons = {}
    read_reasons(path, reasons)
    chance = {(k[0], k[1], k[3]) for k in reasons if k[2] == "-"}
    unlisted = [k for k in missing if REQUIRED.match(k[0]) and k not in reasons and
                (k[0], k[1], k[3]) not in chance]
    stale = [k for k in reasons if k not in missing and k[2] != "-"]
    if "--list" in sys.argv:
        for key in unlisted:
            print("\t".join(key), missing[key], sep="\t")
        return
    sums = {"required": Tally(), "wires": Tally(), "src": Tally(), "guest": Tally()}
    for file in sorted(tallies):
        print(tallies[file].line(file))
        if GUEST.match(file):
            sums["guest"].add(tallies[file])
            continue
        sums["src"].add(tallies[file])
        if REQUIRED.match(file):
            sums["required"].add(tallies[file])
        if WIRES.match(file):
            sums["wires"].add(tallies[file])
    print(sums["required"].line("what has to be listed"))
    print(sums["wires"].line("all wires"))
    print(sums["src"].line("src, but for Linux's SCTP"))
    if os.environ.get("GUEST", "0") != "0":
        print(sums["guest"].line("on Linux's SCTP, in the guest"))
    low = [name for name, floor in FLOORS.items()
           if any(has < least for has, least in zip(sums[name].shares(), floor))]
    for name in low:
        print(f"not ok {name}: less than {FLOORS[name][0]} % of branches, {FLOORS[name][1]} % of conditions")
    for key in unlisted:
        print(f"not ok {key[0]}:{missing[key]}: {key[1]}: \"{key[3]}\" is never "
              f"{'seen to decide alone' if key[2] == 'alone' else key[2]}")
    for key in stale:
        print(f"not ok {path}: {key[0]}: {key[1]}: \"{key[3]}\" {key[2]}: is covered, or is no more")
    if unlisted or stale or low:
        sys.exit(1)
    print(f"ok {len(reasons)} outcomes are not covered, each has its reason")


if __name__ == "__main__":
    main()
