#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the mutators of mutate.h bring: edges and features that a target reaches from nothing in RUNS
# executions, first with libFuzzer's own mutations alone, then with the target's; the same seed.
# usage: gain.sh BUILD RUNS SEED NAME...
set -u
build=$1 runs=$2 seed=$3
shift 3

reached() { # NAME
	"$build/fuzz-$1" -runs="$runs" -seed="$seed" -max_len=2048 -len_control=0 -close_fd_mask=1 2>&1 |
		sed -nE 's/.*DONE +cov: ([0-9]+) ft: ([0-9]+) .*/\1 \2/p'
}

printf '%-14s %22s %22s\n' '' 'edges, features: plain' 'with its mutator'
for name in "$@"; do
	plain=$(FUZZ_PLAIN=1 reached "$name")
	own=$(reached "$name")
	printf '%-14s %22s %22s\n' "$name" "${plain:-failed}" "${own:-failed}"
done
