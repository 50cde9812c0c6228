# SPDX-License-Identifier: BSD-2-Clause
"""Events and members of the schema of sessctl that no manual page names.

usage: json_manual.py SCHEMA MANUAL...
"""
import json
import pathlib
import re
import sys


def names(node):
    """Members that objects have, and the name of an event, at any depth."""
    if isinstance(node, list):
        for value in node:
            yield from names(value)
    if not isinstance(node, dict):
        return
    yield from node.get("properties", {})
    for key, value in node.items():
        yield from names(value)
        if key == "event" and isinstance(value, dict) and "const" in value:
            yield value["const"]


text = "".join(pathlib.Path(page).read_text(encoding="utf-8") for page in sys.argv[2:])
shown = {word.replace("\\", "") for word in re.findall(r"\*([\w\\-]+)\*", text)}
with open(sys.argv[1], encoding="utf-8") as file:
    every = set(names(json.load(file)))
if len(every) < 250:
    print(f"only {len(every)} names were found")
for name in sorted(every - shown):
    print(name)
