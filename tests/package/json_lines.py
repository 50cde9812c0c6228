# SPDX-License-Identifier: BSD-2-Clause
"""Whether lines of JSON are what the schema of sessctl promises, with no member that it does not name.

usage: json_lines.py SCHEMA FILE...
"""

import json
import sys

import jsonschema


def close(node):
    """Forbid members that are not named, where the schema does not say that there may be others."""
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        for value in node.values():
            close(value)
    elif isinstance(node, list):
        for value in node:
            close(value)


def judge(schema, line):
    """None, or what is wrong with the line."""
    event = json.loads(line)
    names = [
        name
        for name, kind in schema["$defs"].items()
        if kind["properties"].get("event", {}).get("const") == event.get("event")
    ]
    faults = []
    for name in names:
        kind = {"$ref": "#/$defs/" + name, "$defs": schema["$defs"]}
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(kind).iter_errors(event))
        if error is None:
            return None
        faults.append(f"{name}: {error.message[:200]} at {list(error.absolute_path)}")
    return "; ".join(faults) or f"no event {event.get('event')} in the schema"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    close(schema)
    bad = 0
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as lines:
            for line in lines:
                fault = judge(schema, line)
                if fault and bad < 5:
                    print(f"{fault}: {line[:160].rstrip()}")
                bad += fault is not None
    sys.exit(bad > 0)


main()
