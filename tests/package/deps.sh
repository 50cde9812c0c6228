#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# tools/deps.sh names what is missing, and installs it only if it is asked to and may.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash

# A system that has no package: apt-get and sudo only write down that they were called.
# shellcheck disable=SC2154 # lib.bash sets it
mkdir "$work/bin"
# shellcheck disable=SC2016 # the shell that runs it expands it
printf '#!/bin/sh\necho "apt-get $*" >>"%s"\n' "$work/called" >"$work/bin/apt-get"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
chmod +x "$work/bin/"*

# asked USER SUDO ARGUMENT...: what apt-get and sudo were called for, and what was printed
asked() {
	printf '#!/bin/sh\necho %s\n' "$1" >"$work/bin/id"
	# shellcheck disable=SC2016 # as above
	printf '#!/bin/sh\n[ "$1" != -n ] || exit %s\necho "sudo $*" >>"%s"\n' "$2" "$work/called" >"$work/bin/sudo"
	chmod +x "$work/bin/id" "$work/bin/sudo"
	: >"$work/called"
	PATH=$work/bin:$PATH tools/deps.sh "${@:3}" >"$work/log" 2>&1
}

asked 0 0 proof
[ $? = 1 ] && [ ! -s "$work/called" ] && grep -q 'apt-get install .* frama-c-base' "$work/log"
result $? "tools/deps.sh names what is missing and how to install it" "$work/log"
asked 0 0 --install proof && grep -q '^apt-get update' "$work/called" &&
	grep -q '^apt-get install .* frama-c-base$' "$work/called"
result $? "with --install root has it installed" "$work/called"
asked 1000 0 --install proof && grep -q '^sudo .*apt-get install .* frama-c-base$' "$work/called"
result $? "so has a user of sudo without a password" "$work/called"
asked 1000 1 --install proof
[ $? = 1 ] && [ ! -s "$work/called" ] && grep -q "^  sudo sh -c '.* frama-c-base'" "$work/log"
result $? "whoever may not install is shown the command" "$work/log"

printf '#!/bin/sh\necho "ii  librdmacm1t64, librdmacm1 (= 56.1-1), another"\n' >"$work/bin/dpkg-query"
asked 0 0 deb
[ $? = 1 ] && grep -q ' libibverbs1' "$work/log" && ! grep -q librdmacm1 "$work/log"
result $? "what another package provides is not missing" "$work/log"

# Which targets ask for it
installs() { # TARGET
	make -n "$1" 2>/dev/null | grep -q 'tools/deps.sh --install'
}
installs demo && installs check && installs check-fast && ! installs lint && ! installs bench && ! installs plants
result $? "make demo, check and check-fast install packages, other targets name them"
