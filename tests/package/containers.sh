#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/containers.md and the steps of containers/Dockerfile, in a fresh clone.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/package/lib.bash
. tests/package/lib.bash
export LC_ALL=C
# What is here now and not the last commit: a clone has no build directory.
here() { # DIRECTORY
	git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$1"
}

mkdir "$work/here" "$work/ci"
here "$work/here"
git -C "$work/here" init -q
git -C "$work/here" add -A
git -C "$work/here" -c user.name=t -c user.email=t@t commit -qm t

# The three lines, as they are.
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^```sh$/,/^```$/p' docs/containers.md | sed '1d;$d' >"$work/lines"
[ "$(wc -l <"$work/lines")" = 3 ]
result $? "the snippet has three lines"
(
	cd "$work/ci" || exit 1
	# shellcheck disable=SC2030 # in here alone
	export DDPSESS=file://$work/here PREFIX=$work/prefix PATH=$work/prefix/bin:$PATH
	export CFLAGS='-O0 -U_FORTIFY_SOURCE' # half the time: how fast it is does not matter here
	unset MAKEFLAGS MAKELEVEL
	set -e
	# shellcheck disable=SC1091
	. "$work/lines"
) >"$work/log" 2>&1 && grep -q 'hca_id:.*ddp0' "$work/log"
result $? "the snippet shows the device" || tail -n 20 "$work/log"

# CI systems and images run the same.
while read -r line; do
	case $line in *" sessctl run "*) continue ;; esac
	[ "$(grep -cF -- "$line" docs/containers.md)" = 3 ]
	result $? "each CI system runs: ${line%% \"*}"
done <"$work/lines"

# The steps of the build stage, with another root.
sed -n '/ AS build$/,/^$/s/^RUN //p' containers/Dockerfile | sed "s|/out|$work/out|" >"$work/steps"
(
	cd "$work/ci/ddpsess" || exit 1
	unset MAKEFLAGS MAKELEVEL PREFIX
	set -e
	# shellcheck disable=SC1091
	. "$work/steps"
) >"$work/log" 2>&1
result $? "the build stage's steps run" || tail -n 20 "$work/log"

# What the second stage copies must find all its libraries among the packages that it installs.
needed=$(find "$work/out/usr/local" -type f \( -name '*.so*' -o -name sessctl \) -exec readelf -d {} + 2>/dev/null |
	sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
for lib in $needed; do
	case $lib in libc.so.6 | libibverbs.so.1 | ld-linux*) continue ;; esac
	package=$(dpkg -S "*/$lib" 2>/dev/null | head -n 1 | cut -d: -f1)
	grep -q "install.* $package\b" containers/Dockerfile
	result $? "the image has ${package:-no package} for $lib"
	grep -q "^RUN.* $package\b" docs/containers.md
	result $? "the documentation names ${package:-no package} for $lib"
done
LD_PRELOAD=$work/out/usr/local/lib/libddpsess-verbs.so timeout 20 ibv_devices | grep -q ddp0
result $? "the environment of the image shows the device"

# The script of the composite action, as its step calls it, in the clone that the lines made.
step=$(sed -n 's/^ *run: //p' containers/action/action.yml)
[ "$(wc -l <<<"$step")" = 1 ]
result $? "the action has one step"
step=${step//\$\{\{ github.action_path \}\}/$work/ci/ddpsess/containers/action}
step=${step//\$\{\{ inputs.prefix \}\}/$work/action}
step=${step//\$\{\{ inputs.bundle \}\}/}
(
	unset MAKEFLAGS MAKELEVEL PREFIX
	export GITHUB_PATH=$work/path
	eval "$step"
) >"$work/log" 2>&1 && [ "$(cat "$work/path")" = "$work/action/bin" ] &&
	"$work/action/bin/sessctl" run --profile "$work/action/share/ddpsess/profiles/two.profile" \
		-- ibv_devices | grep -q rnic1
result $? "the action's step installs ddpsess and puts it in the path" || tail -n 20 "$work/log"

# The steps of the image with programs: packages that there are, and a command that works.
packages=$(sed -n 's/^RUN .*--no-install-recommends \([^&]*\) &&.*/\1/p' containers/Dockerfile.test)
for p in $packages; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed'
	result $? "the image with programs can have $p"
done
(
	# shellcheck disable=SC2030,SC2031 # in here alone
	export PATH=$work/action/bin:$PATH
	eval "$(sed -n 's/^RUN \(sessctl .*\)/\1/p' containers/Dockerfile.test)"
) 2>&1 | grep -q 'hca_id:.*ddp0'
result $? "the image with programs shows the device"

# The image of the conformance suite: the documented run, by its entry point and as somebody without rights.
chmod -R a+rX "$work"
mkdir -m 777 "$work/report"
entry=$(sed -n 's/^ENTRYPOINT //p' containers/Dockerfile.conform | tr -d '[],"')
# shellcheck disable=SC2016 # as it is written there
args=$(sed -n 's/^docker run .* -v "$PWD:\/out" ddpsess-conform //p' docs/containers.md)
[ "$entry" = "sessctl conform" ] && [ "$(wc -l <<<"$args")" = 1 ] && grep -q '^WORKDIR /out$' containers/Dockerfile.conform
result $? "the image of the suite has an entry point, and a documented run in /out"
# shellcheck disable=SC2031 # meant
export PATH=$work/action/bin:$PATH
mkfifo "$work/listener"
sessctl listen --json tcp://127.0.0.1:0 >"$work/listener" 2>"$work/log" &
listener=$!
exec 9<"$work/listener"
read -r -t 60 -u 9 line
uri=$(sed -n 's/.*"uri":"\([^"]*\)".*/\1/p' <<<"$line")
nobody=(setpriv --no-new-privs)
[ "$(id -u)" != 0 ] || nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --no-new-privs)
# shellcheck disable=SC2086 # words are meant
(cd "$work/report" && timeout 100 "${nobody[@]}" $entry ${args//tcp:\/\/192.0.2.1:7174/$uri} --case 'mpa-request-*') >"$work/log" 2>&1 &&
	[ "$(grep -c '<testcase' "$work/report/report.xml")" -gt 10 ] && ! grep -q '<failure' "$work/report/report.xml"
result $? "the image of the suite tests a peer and leaves a report" || tail -n 5 "$work/log"
kill "$listener"
exec 9<&-
wait "$listener"

# The Kubernetes example: what it asks for, and its two commands with no more rights than it gives.
python3 - containers/kubernetes.yaml >"$work/pod" 2>"$work/log" <<'END'
import shlex, sys, yaml
spec = yaml.safe_load(open(sys.argv[1]))["spec"]["template"]["spec"]
asked = set(spec) - {"restartPolicy", "automountServiceAccountToken", "securityContext", "containers"}
assert not asked, asked
assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 65534
for c in spec["containers"]:
    assert set(c) == {"name", "image", "command", "args", "securityContext"}, c
    rights = c["securityContext"]
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert rights["allowPrivilegeEscalation"] is False and rights["readOnlyRootFilesystem"] is True
    print(shlex.join(c["command"] + c["args"]))
END
result $? "the Kubernetes example asks for no right" || cat "$work/log"
[ "$(wc -l <"$work/pod")" = 2 ]
result $? "it has two containers"
# from the system's folders, as in the image; a file system that is read-only where that can be had
chmod -R a+rX "$work"
chmod a+x "$work/action/bin/sessctl"
rights=(setpriv --no-new-privs)
[ "$(id -u)" != 0 ] || rights=(setpriv --reuid 65534 --regid 65534 --clear-groups
	--bounding-set=-all --inh-caps=-all --no-new-privs)
inside=(unshare -m --propagation private sh -c 'mount -o remount,bind,ro / && exec "$@"' sh)
"${inside[@]}" true 2>/dev/null || {
	inside=()
	echo "ok a read-only file system # skipped: mount is not allowed here"
}
port=$(sed -n 's/.*"-p", "\([0-9]*\)".*/\1/p' containers/kubernetes.yaml | sort -u)
[ "$(wc -w <<<"$port")" = 1 ]
result $? "both have one port"
free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -i "s/$port/$free/" "$work/pod"
container() { # NUMBER
	local words
	eval "words=($(sed -n "$1p" "$work/pod"))"
	# shellcheck disable=SC2031 # meant
	PATH=$work/action/bin:$PATH timeout 60 "${inside[@]}" "${rights[@]}" "${words[@]}"
}
container 1 >"$work/one" 2>&1 &
server=$!
container 2 >"$work/two" 2>&1
client=$?
wait "$server"
server=$?
[ "$client" = 0 ] && [ "$server" = 0 ] && grep -q 'ping data' "$work/two"
result $? "its containers end well (client $client, server $server)" ||
	tail -n 5 "$work/one" "$work/two"
