#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Each line of tests/mutate/equivalent.tsv is of a change that there is.
set -u
cd "$(dirname "$0")/../.." || exit 1
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/mutate python3 - <<'END'
import changes, os, sys
there = {m.id for folder in changes.FOLDERS for name in os.listdir(folder) if name.endswith(".c")
         for m in changes.mutations_of(f"{folder}/{name}")}
known = changes.equivalents()
for m in known:
    if m not in there:
        print(f"not ok tests/mutate/equivalent.tsv: {m}: no change has this id any more; take the line out")
if set(known) - there:
    sys.exit(1)
print(f"ok {len(known)} changes that change nothing, of {len(there)}")
END
