# SPDX-License-Identifier: BSD-2-Clause
"""Whether every counter of the library is shown, documented and exposed.

usage: counters.py INCLUDE MANUAL STAT METRICS

STAT is what sessctl stat --json prints, METRICS what it prints with --metrics.  Every number that a struct
of stats.h has must be in STAT, every member in STAT must be in the manual, and every number that counts or
measures something must be a metric."""
import json
import pathlib
import re
import sys

include, manual, stat, metrics = map(pathlib.Path, sys.argv[1:])
# Which object of STAT has a struct's members, what stands before their names there, and other names.
OBJECTS = {
    "ddps_msg_stats": ("traffic", "", {}),
    "ddps_ep_stats": ("session", "", {}),
    "ddps_ctx_stats": ("context", "", {"endpoints": "sessions"}),
    "ddps_secured_stats": ("context", "dtls_", {}),
    "ddps_assoc_stats": ("association", "", {"sessions": "shares_association_with"}),
}


def members(header):
    """The integers of each struct, by its name."""
    text = re.sub(r"/\*.*?\*/", "", (include / "ddpsess" / header).read_text(encoding="utf-8"), flags=re.S)
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
        found[name] = {
            member.strip()
            for names in re.findall(r"\buint(?:16|32|64)_t ([\w, ]+);", body)
            for member in names.split(",")
        }
    return found


def numbers(thing):
    return {key for key, value in thing.items() if isinstance(value, int) and not isinstance(value, bool)}


processes = [json.loads(line) for line in stat.read_text(encoding="utf-8").splitlines()]
told = {kind: set() for kind in ("context", "session", "association", "datagrams", "service", "traffic")}
words = set()
for process in processes:
    words |= set(process)
    for kind, member in (("context", "context"), ("session", "sessions"), ("datagrams", "datagrams"), ("service", "service")):
        things = process.get(member, [])
        for thing in [things] if isinstance(things, dict) else things:
            told[kind] |= numbers(thing)
            words |= set(thing)
            for way in ("sent", "received"):
                told["traffic"] |= numbers(thing.get(way, {}))
            if thing.get("transport", "").startswith("sctp"):
                told["association"] |= numbers(thing)

faults = []
structs = members("stats.h")
for struct, fields in structs.items():
    if struct not in OBJECTS and struct != "ddps_path_stats":
        faults.append(f"{struct}: in which object of stat is it?")
    kind, prefix, names = OBJECTS.get(struct, (None, "", {}))
    for field in sorted(fields) if kind and (kind != "association" or told[kind]) else []:
        if prefix + names.get(field, field) not in told[kind]:
            faults.append(f"{struct}.{field}: not in stat --json")
if sum(map(len, structs.values())) < 60:
    faults.append("hardly any member was found in stats.h")

page = manual.read_text(encoding="utf-8")
faults += [f"{word}: not in {manual.name}" for word in sorted(words | told["traffic"]) if f"*{word}*" not in page]

exposed = {line.split()[2]: line.split()[3] for line in metrics.read_text(encoding="utf-8").splitlines() if line.startswith("# TYPE ")}
sampled = {line.split("{")[0] for line in metrics.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
counted = set().union(*(structs[of] for of in OBJECTS))  # of a session, all else is what it agreed on
known_by = {"qp_num", "port"}


def is_exposed(prefix, key):
    name = prefix + re.sub("_ns$", "_nanoseconds", key)
    return any(name + end in exposed and name + end in sampled for end in ("", "_total", "_octets", "_octets_total"))


for kind, prefix in (("context", ""), ("session", "session_"), ("datagrams", "datagrams_"), ("service", "service_")):
    for key in sorted(told[kind] & counted if kind == "session" else told[kind] - known_by):
        if not is_exposed(f"ddpsess_{prefix}", key):
            faults.append(f"{kind} {key}: no metric")
for key in sorted(told["traffic"]):
    if not all(is_exposed(f"ddpsess_{way}_", key) for way in ("sent", "received")):
        faults.append(f"traffic {key}: no metric")
for name, kind in exposed.items():
    if (kind == "counter") != name.endswith("_total"):
        faults.append(f"{name} is a {kind}")
print("; ".join(faults))
sys.exit(bool(faults))
