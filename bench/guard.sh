#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The data path's cost, without noise: instructions of our own code (callgrind; not libc, ISA-L
# or the kernel, which depend on the machine), calls that send and all calls of the system, on a
# fixed workload, against bench/guard.txt; and no call of the allocator.  One line a case.  usage: guard.sh BUILD [--write]
#
# Above +5 % of instructions or +20 % of calls is a failure.  If a change is worth it, run with --write and say why in
# the commit.
set -u
build=$1 mode=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
record=$here/guard.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# Self cost of all functions of the program itself but those that count; the line after "calls=" is
# what was called.
own_instructions() { # FILE PROGRAM
	awk -v own_name="/$2\$" '
	/^ob=/ {
		split($0, part, /[()]/)
		if (part[3] != "")
			name[part[2]] = part[3]
		own = name[part[2]] ~ own_name
	}
	/^cob=/ {
		split($0, part, /[()]/)
		if (part[3] != "")
			name[part[2]] = part[3]
	}
	/^c?fn=/ {
		split($0, part, /[()]/)
		if (part[3] != "")
			fn[part[2]] = part[3]
		if ($0 ~ /^fn=/)
			counts = fn[part[2]] ~ /__wrap_/
	}
	/^calls=/ { getline; next }
	/^[0-9+*-]/ && own && !counts { sum += $2 }
	END { printf "%.0f\n", sum }' "$1"
}

# The drop-in and IPoIB have programs of their own.
program_of() { # WIRE
	case $1 in
	verbs | ipoib) echo "guard_$1" ;;
	*) echo guard ;;
	esac
}

instructions() { # WIRE OP COUNT
	valgrind -q --tool=callgrind --callgrind-out-file="$work/out" \
		"$build/$(program_of "$1")" "$@" >/dev/null 2>"$work/err" &&
		own_instructions "$work/out" "$(program_of "$1")"
}

# Per operation, set-up excluded: the difference of a long and a short run.
per_op() { # WIRE OP
	local long short least=64 more=2048
	case $2 in
	many | shared) least=256 ;;
	write | read) more=512 ;; # of 64 KiB: nearly all that valgrind runs is not counted
	esac
	long=$(instructions "$1" "$2" $((least + more))) && short=$(instructions "$1" "$2" $least) &&
		echo $(((long - short) / more))
}

# The count is one compiler's; with another one there is nothing to compare.
compiler=$(readelf -p .comment "$build/guard" | grep -o 'GCC: .*' | head -n 1)

compare() { # WIRE OP
	local now was
	now=$(per_op "$1" "$2")
	if [ -z "$now" ] || [ "$now" -le 0 ]; then
		echo "not ok instructions ($1 $2): no count: $(tail -n 2 "$work/err" | tr '\n' ' ')"
		return 1
	fi
	[ "$mode" != --write ] || echo "$1 $2 $now" >>"$record"
	was=$(sed -n "s/^$1 $2 \([0-9]*\)$/\1/p" "$record")
	if [ -n "$was" ] && [ $((now * 100)) -le $((was * 105)) ]; then
		echo "ok instructions ($1 $2): $now an operation, recorded $was"
		return 0
	fi
	echo "not ok instructions ($1 $2): $now an operation, recorded ${was:-nothing};" \
		"if it is worth it: bench/guard.sh $build --write"
	return 1
}

# The best of some passes: what an operation needed, or one of a hundred, would be seen in all of them.  SCTP's
# memory for messages grows when more of them wait for an acknowledgement than ever before, and stays.  Its control
# chunks come seldom, by its timers and when something is lost.
count() { # WIRE OP THREADS
	local got allocations waits
	got=$("$build/guard" "$1" "$2" 2560 "$3" "$([ "$1" = tcp ] && echo 1 || echo 16)" 2>&1)
	allocations=$(sed -n 's/^allocations \([0-9]*\),.*/\1/p' <<<"$got")
	waits=$(sed -n 's/.* waited for \([0-9]*\),.*/\1/p' <<<"$got")
	if [ "$waits" = 0 ] && [ -n "$allocations" ] &&
		[ "$allocations" -le "$([ "$1" = tcp ] && echo 0 || echo 25)" ]; then
		echo "ok no allocation, no contended lock ($1 $2, threads: $3)"
		return 0
	fi
	echo "not ok no allocation, no contended lock ($1 $2, threads: $3): $got"
	return 1
}

# Calls that send, and all calls of the system, of both sides, a thousand operations.
calls() { # WIRE OP
	local got kind now was failed=0
	got=$("$build/guard" "$1" "$2" 2560 2>&1)
	for kind in calls syscalls; do
		if [ $kind = calls ]; then
			now=$(sed -n 's/.*, sends \([0-9]*\),.*/\1/p' <<<"$got")
		else
			now=$(sed -n 's/.*, calls \([0-9]*\)$/\1/p' <<<"$got")
		fi
		now=$((${now:-0} * 100 / 256))
		[ "$mode" != --write ] || echo "$1 $2 $kind $now" >>"$record"
		was=$(sed -n "s/^$1 $2 $kind \([0-9]*\)$/\1/p" "$record")
		if [ "$now" -gt 0 ] && [ -n "$was" ] && [ $((now * 100)) -le $((was * 120)) ]; then
			echo "ok $(what $kind) ($1 $2): $now a thousand operations, recorded $was"
		else
			echo "not ok $(what $kind) ($1 $2): $now a thousand operations, recorded ${was:-nothing}"
			failed=1
		fi
	done
	return $failed
}

what() { # KIND
	[ "$1" = calls ] && echo "calls that send" || echo "system calls"
}

[ "$mode" != --write ] || echo "# $compiler" >"$record"
if ! command -v valgrind >/dev/null; then
	echo "ok instructions # skip: valgrind is not installed"
elif [ "# $compiler" != "$(head -n 1 "$record")" ]; then
	echo "ok instructions # skip: built by $compiler, not by what made bench/guard.txt"
else
	for op in send write read ping many shared; do # of a set-up they depend on time
		compare tcp $op || failures=$((failures + 1))
	done
	for op in send write read ping many; do
		compare sctp $op || failures=$((failures + 1))
	done
	for op in post list; do
		compare verbs $op || failures=$((failures + 1))
	done
	for op in datagram connection; do
		compare ipoib $op || failures=$((failures + 1))
	done
fi
for op in send write read; do
	calls tcp $op || failures=$((failures + 1))
	calls sctp $op || failures=$((failures + 1))
	count tcp $op 1 || failures=$((failures + 1))
	count tcp $op 2 || failures=$((failures + 1))
	count sctp $op 1 || failures=$((failures + 1))
done
for op in ping many shared; do
	calls tcp $op || failures=$((failures + 1))
	count tcp $op 1 || failures=$((failures + 1))
done
for op in ping many; do
	calls sctp $op || failures=$((failures + 1))
done
calls tcp setup || failures=$((failures + 1))
exit $((failures > 0))
