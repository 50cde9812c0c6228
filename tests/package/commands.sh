#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What README and docs/ show runs, on an installation that is made for it.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
page=$work/page.md

show() { # TABLE PAGE...
	python3 tests/package/commands.py "$work/root/usr/local" "$@"
}

found() { # NAME PATTERN: of the page on standard input it says that
	cat >"$page"
	! show /dev/null "$page" >"$work/log" && grep -q -- "$2" "$work/log"
	result $? "$1 is found"
}

root=
[ "$(id -u)" = 0 ] || root=-r
if ! unshare $root -mn mount -t tmpfs none /srv 2>/dev/null; then
	echo "ok commands of pages # skipped: no namespaces here"
	exit 0
fi
make -s install DESTDIR="$work/root" PREFIX=/usr/local >"$work/log" 2>&1
result $? "make install" "$work/log"
show tests/package/commands.tsv || : >"$work/.not-ok"

found "other output" "no line like: 0x0000000000000000 not this" <<'END'
```console
$ sessctl ipoib service-id --qpn 0x48
0x0000000000000000 not this
```
END
found "a command that fails" '^status [1-9]' <<'END'
```sh
sessctl connect tcp://127.0.0.1:9
```
END
found "a program that is no example" 'is in no example' <<'END'
```c
int main(void) { return 7; }
```
END
found "a block that nobody runs" 'looks like a command' <<'END'
```text
sessctl --help
```
END
