#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs what README and the pages of docs/ show.

commands.py PREFIX TABLE [PAGE...]

PREFIX is an installation, which takes the place of /usr/local.  Blocks of a page marked "sh" are one
script, run from its first line to its last where examples/ and python/ are, in namespaces of its own
with the addresses that the pages name.  Those marked "console" have commands behind "$ " and their
output, which has to come line by line; numbers may differ, and "..." stands for any lines.  Blocks
of C and Python are parts of an example.  TABLE names what runs the blocks that cannot run here:
page, the block's first line, a file, and a word that it has.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
RUN = re.compile(r"^(\$ )?([A-Z_]+=\S* )*(sessctl|make|cc|docker|kubectl|sudo|tshark|cmake|pip) ", re.M)
PROGRAMS = ("PROGRAM", "program", "your-rdma-test")
LIMIT = 120

# What a page's script starts with.  A command in the background is ready when it has bound a socket.
BEGIN = r"""
set -e
export PATH=/usr/local/bin:$PWD:$PATH LD_LIBRARY_PATH=/usr/local/lib HOME=$PWD/home
export PYTHONDONTWRITEBYTECODE=1 DDPSESS_RETRY_MS=15000
mkdir -p home
sudo() { "$@"; }
bound() { cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | wc -l; }
ready() {
	local i
	for ((i = 0; i < 1000; i++)); do
		[ "$(bound)" = "$sockets" ] || break
		kill -0 $! 2>/dev/null || break
		sleep 0.01
	done
	sockets=$(bound)
}
trap 'kill $(jobs -p) 2>/dev/null || :' EXIT
sockets=$(bound)
"""
OUTSIDE = r"""
set -e
ip link set lo up
for a in 10.0.0.1/8 192.0.2.1/24; do ip addr add $a dev lo; done
printf '127.0.0.1 localhost host node-a node-b\n' >"$1/hosts"
mount --bind "$1/hosts" /etc/hosts
mount --bind "$2" /usr/local
mount -t tmpfs none /srv
mkdir /srv/files
cd "$1/checkout"
exec bash ../script
"""


def blocks(page):
    """The page's blocks: line, kind, text."""
    text = pathlib.Path(page).read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1], match[2]


def elsewhere(table):
    """What other tests run: by page and first line, the file and its word."""
    rows = {}
    for row in pathlib.Path(table).read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            page, first, file, word = row.split("\t")
            rows[page, first] = file, word
    return rows


def alike(text):
    """Output without what differs from run to run."""
    text = re.sub(r"\b[0-9a-f]{16,}\b", "H", text)
    text = re.sub(r"[0-9]+([.,:][0-9]+)*", "N", text)
    return re.sub(r"[ \t]+", " ", text).strip()


def shell(line, text):
    """A block of commands, with its place in the page."""
    out = [f": page line {line}"]
    for command in re.sub(r"\\\n\s*", " ", text).splitlines():
        out.append(command)
        if re.search(r"&\s*(#.*)?$", command) and "&&" not in command.rstrip()[-2:]:
            out.append("ready")
    return "\n".join(out) + "\n"


def console(line, text, number):
    """A block of commands and their output; what they print goes into a file for each."""
    script, expected, count = "", [], 0
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.lstrip("> ")
        name = f"../out.{number}.{count}"
        count += 1
        body, end = re.subn(r"&\s*$", "", command)
        script += shell(line, f"{{ {body}; }} >{name} 2>&1" + (" &" if end else ""))
        expected.append((name, command, output))
    return script, expected


def missing(expected, folder):
    """Lines of output that did not come, or not in their order."""
    for name, command, output in expected:
        got = (folder / name).read_text(encoding="utf-8", errors="replace")
        lines = [alike(line) for line in got.splitlines()]
        for line in output.splitlines():
            want = alike(line)
            if want in ("", "..."):
                continue
            if want not in lines:
                return f"{command}: no line like: {line}\n{got}"
            lines = lines[lines.index(want) + 1 :]
    return ""


def sources():
    """All examples, as one text."""
    found = [*pathlib.Path("examples").iterdir(), *pathlib.Path("python/examples").iterdir()]
    return "\n".join(f.read_text(encoding="utf-8") for f in found if f.is_file())


def checkout(folder):
    """A copy of what pages use of the repository, and what placeholders stand for."""
    for name in ("examples", "python"):
        shutil.copytree(name, folder / name)
    (folder / "FILE").write_text("contents\n", encoding="utf-8")
    for name in PROGRAMS:
        (folder / name).symlink_to(shutil.which("ibv_devinfo") or "/bin/true")


def end_group(group):
    """Whatever a page has started and not ended, in its background above all."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def play(page, script, expected, prefix):
    """Run a page's script.  What is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        checkout(folder / "checkout")
        (folder / "script").write_text(BEGIN + script, encoding="utf-8")
        command = ["unshare", "-mn", "bash", "-c", OUTSIDE, "page", work, prefix]
        if os.geteuid() != 0:
            command.insert(2, "-r")
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child:
            try:
                output = child.communicate(timeout=LIMIT)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                return f"{page} takes more than {LIMIT} s"
            finally:
                end_group(child.pid)
        if child.returncode != 0:
            outs = sorted(folder.glob("out.*"), key=lambda f: f.stat().st_mtime)
            last = outs[-1].read_text(errors="replace") if outs else ""
            return f"status {child.returncode}\n{output[-2000:]}\n{last[-2000:]}"
        return missing(expected, folder / "checkout")


def check(page, prefix, rows, used, examples):
    """One page.  What is wrong with it, as lines."""
    script, expected, wrong = "", [], []
    for number, (line, kind, text) in enumerate(blocks(page)):
        first = text.split("\n", 1)[0]
        row = rows.get((page, first))
        if row:
            used.add((page, first))
            if not os.path.exists(row[0]) or row[1] not in pathlib.Path(row[0]).read_text():
                wrong.append(f"{page}:{line}: {row[0]} does not have: {row[1]}")
        elif kind == "sh":
            script += shell(line, text)
        elif kind == "console":
            more, outputs = console(line, text, number)
            script += more
            expected += outputs
        elif kind in ("c", "python"):
            if text not in examples:
                wrong.append(f"{page}:{line}: is in no example: {first}")
        elif kind != "text":
            wrong.append(f"{page}:{line}: a block of unknown kind '{kind}': {first}")
        elif RUN.search(text):
            wrong.append(f"{page}:{line}: text that looks like a command: {first}")
    if script and not wrong:
        said = play(page, script, expected, prefix)
        if said:
            wrong.append(said)
    return wrong


def main(prefix, table, *pages):
    """All pages, or those that are named.  Whether anything is wrong."""
    bad = False
    rows, used, examples = elsewhere(table), set(), sources()
    names = pages or ["README.md", "CONTRIBUTING.md", *sorted(map(str, pathlib.Path("docs").rglob("*.md")))]
    for page in names:
        if not any(True for _ in blocks(page)):
            continue
        wrong = check(page, prefix, rows, used, examples)
        print(f"{'not ok' if wrong else 'ok'} what {page} shows", *wrong, sep="\n", flush=True)
        bad = bad or bool(wrong)
    for page, first in rows.keys() - used:
        if page in names:
            print(f"not ok {table}: {page} has no such block: {first}")
            bad = True
    return bad


sys.exit(main(*sys.argv[1:]))
