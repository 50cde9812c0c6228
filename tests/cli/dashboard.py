#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whether each query of a dashboard can be answered from metrics: dashboard.py DASHBOARD <METRICS

A metric that is asked for is there; rates are of counters, and only they; labels that a query or a legend
names are the metric's; no two panels have one place."""
import json
import re
import sys

kind, labels = {}, {}
for line in sys.stdin:
    if line.startswith("# TYPE "):
        kind[line.split()[2]] = line.split()[3]
    elif not line.startswith("#"):
        labels[line.split("{")[0]] = set(re.findall(r'(\w+)="', line))

faults, asked, places = [], 0, set()
for panel in json.load(open(sys.argv[1], encoding="utf-8"))["panels"]:
    place = (panel["gridPos"]["x"], panel["gridPos"]["y"])
    if place in places:
        faults.append(f"{panel['title']}: another panel is at {place}")
    places.add(place)
    for target in panel["targets"]:
        query = target["expr"]
        metric = re.search(r"ddpsess_\w+", query)[0]
        asked += 1
        if metric not in kind:
            faults.append(f"{query}: there is no such metric")
            continue
        if ("rate(" in query) != (kind[metric] == "counter"):
            faults.append(f"{query}: it is a {kind[metric]}")
        wanted = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        for names in re.findall(r"by \(([\w, ]+)\)", query):
            by = set(re.split(", *", names))
            if wanted - by:
                faults.append(f"{query}: the sum has no {wanted - by}")
            wanted |= by
        if metric in labels and wanted - labels[metric]:
            faults.append(f"{query}: the metric has no label {wanted - labels[metric]}")
if asked < 12:
    faults.append(f"{asked} queries")
print("\n".join(faults))
sys.exit(bool(faults))
