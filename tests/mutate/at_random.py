#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Mutations at random: one operator, constant or statement of the wires is changed, and the tests are
run, the shortest first, until one fails.

usage: at_random.py BUILD N SEED [PATTERN]

BUILD, a finished one, is copied with the sources, and only what a mutation touches is compiled.  PATTERN:
only files whose names have it, or the mutation with that id.  What compiles to the same code is no mutation, and what
tests/mutate/equivalent.tsv lists (id, file, function, line, reason; tabs in between) changes nothing that
anyone could see.  The id is made of the file, the function and the lines before and after, so it
stays the same while the function does not change there.  STEPS=2 in the
environment: only so many suites are run, for a first look.  Exit status: 0 if none survived.
"""

import hashlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDERS = ["src/ddp", "src/rdmap", "src/negotiate", "src/mpa_tcp", "src/sctp", "src/sctp/parts",
           "src/sctp/send", "src/sctp_ddp", "src/sctp_ddp/backend", "src/sctp_ddp/backend/native"]
# What only a guest runs: on most hosts the kernel has no SCTP, and no suite here would notice.
LEFT_OUT = "src/sctp_ddp/backend/kernel"
# What is nearest to a folder, in the unit tests; then all of them, and then the rest.
NEAREST = {"src/ddp": "@(ddp|stag|rdmap)*/*", "src/rdmap": "rdmap*/*", "src/negotiate": "negotiate*/*",
           "src/mpa_tcp": "mpa*/*", "src/sctp": "@(sctp|sd_native)*/*", "src/sctp_ddp": "sd_*/*"}
SWAPS = {"<": ["<=", ">="], ">": [">=", "<="], "<=": ["<", ">"], ">=": [">", "<"], "==": ["!="],
         "!=": ["=="], "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"], "++": ["--"], "--": ["++"],
         "+=": ["-="], "-=": ["+="], "&": ["|"], "|": ["&"], "|=": ["&="], "&=": ["|="], "<<": [">>"],
         ">>": ["<<"], "%": ["*"], "/": ["*"], "true": ["false"], "false": ["true"],
         "continue": ["break"]}
TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[A-Za-z_]\w*|\d[\w.]*|->|\+\+|--|<<=|>>=|<=|>=|==|!=|'
    r'&&|\|\||[-+*/%&|^]=|<<|>>|\S')
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STATEMENT = re.compile(r"^\t+(?:[\w.>\[\]*()-]+ (?:[-+|&^]|<<|>>)?= .*|[\w.>-]+(?:\+\+|--)|\w+\(.*\)|break);$")
WORDS = re.compile(r"^\t+(?:return|goto|case|default|if|while|for|struct|const|static|unsigned|int|bool|"
                   r"size_t|uint\d+_t|ssize_t|void|char|enum|else)\b")
NAME = re.compile(r"(\w+)\(")
# x < y ? x : y, and if (x < y) x = y: where both are equal it is the same which is taken.
EDGES = [{"<", "<="}, {">", ">="}]
EITHER = re.compile(r"(?:= |return |[(] ?|&& |[|][|] |, |[?:] )([^=?:&|,;]+?) [<>]=? ([^=?:&|,;]+?) "
                    r"[?] (?:\1 : \2|\2 : \1)[;,)]")
BOUND = re.compile(r"if \((?:.*? && )?([^=?:&|,;]+?) [<>]=? ([^=?:&|,;]+)\)\n\s*(?:\1 = \2|\2 = \1);")
TOO_LONG = 124
STEPS = int(os.environ.get("STEPS", "99"))


class Mutation:
    def __init__(self, file, line, function, old, new):
        self.file, self.line, self.function, self.old, self.new = file, line, function, old, new
        text = "\0".join([file, function, old.strip(), new.strip()])
        self.id = hashlib.sha1(text.encode()).hexdigest()[:10]

    def __str__(self):
        return f"{self.id} {self.file}:{self.line}: {self.function}: {self.old.strip()}  ->  {self.new.strip()}"


def same_at_the_edge(m, after):
    """Whether < became <=, or the like, where that only says which of two equal values is taken."""
    pairs = [(a, b) for a, b in zip(TOKEN.findall(m.old), TOKEN.findall(m.new)) if a != b]
    if len(pairs) != 1 or set(pairs[0]) not in EDGES:
        return False
    text = m.old.strip() + "\n" + after
    # the changed one has to be the one that the pattern names
    for found in (EITHER.search(m.old), BOUND.match(text)):
        if found and all(s.count("(") == s.count(")") for s in found.groups()) and \
                len(re.findall(r" [<>]=? ", found.group().split("?")[0].split("\n")[0])) == 1 and \
                len(re.findall(r" [<>]=? ", m.old)) == 1:
            return True
    return False


def without_comments(text):
    return COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def of_tokens(line, code):
    """The same line with one token changed, for each."""
    tokens = list(TOKEN.finditer(code))
    for i, t in enumerate(tokens):
        word, before = t.group(), tokens[i - 1].group() if i else ""
        binary = bool(before) and (before[-1].isalnum() or before[-1] in "_)]") and before not in (
            "return", "case", "sizeof")
        news = []
        if word in SWAPS and (word not in "&+-" or binary) and not (word == "*" and not binary):
            news = SWAPS[word]
        elif word == "!":
            news = [""]
        elif re.fullmatch(r"\d+u?", word) and before != "[":
            n = int(word.rstrip("u"))
            news = [str(n + 1)] + ([str(n - 1)] if n else [])
        elif word in ("if", "while") and code.rstrip().endswith((")", ") {")):
            inside = code[t.end():]
            close = inside.rfind(")")
            news = [f"{word} (!{inside[inside.find('('):close + 1]}){inside[close + 1:]}"]
            for n in news:
                yield line[:t.start()] + n
            continue
        for n in news:
            yield line[:t.start()] + n + line[t.end():]


def mutations_of(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines, codes = text.split("\n"), without_comments(text).split("\n")
    function, inside, head = "", False, ""
    for i, (line, code) in enumerate(zip(lines, codes)):
        if code.startswith("}"):
            inside, head = False, ""
            continue
        if code.startswith("{"):
            inside = True
            found = NAME.search(head)
            function = found.group(1) if found else ""
            if found and re.match(r"(static )?(inline )?void \w+\(", head):
                yield Mutation(path, i + 1, function, line, "{ return;")
            continue
        if not inside:
            head = (head + " " + code if code[:1] in "\t " else code) if code.strip() else ""
            continue
        if not function or code.startswith("#") or "static const" in code:
            continue
        whole = i == 0 or codes[i - 1].rstrip().endswith((";", "{", "}", ")", ":", "else", "")) or \
            not codes[i - 1].strip()
        if STATEMENT.match(code.rstrip()) and not WORDS.match(code) and whole:
            yield Mutation(path, i + 1, function, line, re.sub(r"\S.*", ";", line))
        found = re.match(r"^(\t+)return (?!0;)[^;]+;$", code.rstrip())
        if found:
            yield Mutation(path, i + 1, function, line, found.group(1) + "return 0;")
        for new in of_tokens(line, code):
            yield Mutation(path, i + 1, function, line, new)


def gentle():
    """A new session is a group of its own for the scheduler, which knows nothing of nice."""
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write(str(os.nice(0)))
    except OSError:
        pass


class Tree:
    """A copy of the sources and of the build, in which one mutation is made after the other."""

    def __init__(self, build):
        self.build, self.top = build, tempfile.mkdtemp(prefix="mutate-")
        os.makedirs(os.path.join(self.top, os.path.dirname(build)))
        for d in ("Makefile", "mk", "src", "include", "tests", "tools", "bench", build):
            subprocess.run(["cp", "-a", d, os.path.join(self.top, d)], check=True)
        self.env = dict(os.environ, LSAN_OPTIONS="exitcode=0")
        self.unchanged = {}

    def run(self, limit, *command):
        """Its exit status, or TOO_LONG."""
        p = subprocess.Popen(command, cwd=self.top, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.env,
                             start_new_session=True, preexec_fn=gentle)
        try:
            return p.wait(limit)
        except subprocess.TimeoutExpired:
            return TOO_LONG
        finally:
            try:
                os.killpg(p.pid, 9)
            except ProcessLookupError:
                pass
            p.wait()

    def make(self, *targets):
        return self.run(600, "make", "-s", f"VARIANT={os.path.basename(self.build)}", "WERROR=",
                        f"CC={os.environ.get('CC', 'gcc')}",
                        *(f"{self.build}/{t}" for t in targets)) == 0

    def code(self, file):
        """What the processor sees of it."""
        out = os.path.join(self.top, "code.o")
        subprocess.run(["objcopy", "-g", os.path.join(self.top, self.build, file[:-2] + ".o"), out],
                       check=True)
        with open(out, "rb") as f:
            return f.read()

    def code_before(self, file):
        """The same of the file as it is: later there is the object of the mutation before."""
        if file not in self.unchanged:
            self.unchanged[file] = self.code(file)
        return self.unchanged[file]

    def write(self, file, text):
        with open(os.path.join(self.top, file), "w", encoding="utf-8") as f:
            f.write(text)


def steps(m):
    """Targets, time limit and command, the shortest first."""
    folder = next(f for f in NEAREST if m.file.startswith(f + "/"))
    sctp = folder.startswith("src/sctp")
    unit = ["--jobs", "2", "--color=never", "--fail-fast"]
    if sctp:
        yield "sim-sctp, short", "sim-sctp", 20, ["sim-sctp", "1", "3000"]
    yield "near", "unit", 60, ["unit", *unit, "--filter", NEAREST[folder]]
    yield "unit", "unit", 240, ["unit", *unit]
    if sctp:
        yield "sim-sctp", "sim-sctp", 120, ["sim-sctp", "1", "20000"]
    yield "sim-session", "sim-session", 120, ["sim-session", "1", "4000"]
    yield "fault", "fault", 240, ["fault"]
    yield "e2e", "e2e", 240, ["e2e", *unit]
    for wire in ("sctp", "tcp") if sctp else ("tcp", "sctp"):
        yield f"conform {wire}", "sessctl", 240, ["sessctl", "conform", "--self", wire, "--json"]


def failing(tree, m):
    """The first step that notices, or None."""
    for name, target, limit, command in itertools.islice(steps(m), STEPS):
        if not tree.make(target):
            return "build"
        status = tree.run(limit, f"{tree.build}/{command[0]}", *command[1:])
        if status:
            return f"{name}, no end" if status == TOO_LONG else name
    return None


def equivalents():
    known = {}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.tsv")
    with open(path, encoding="utf-8") as f:
        for line in f:
            parts = line.rstrip("\n").split("\t")
            if line.startswith("#") or not line.strip():
                continue
            if len(parts) != 5 or not parts[4]:
                sys.exit(f"{path}: id, file, function, line and reason are needed: {line}")
            known[parts[0]] = parts[4]
    return known


def judge(tree, m, known):
    path = os.path.join(tree.top, m.file)
    with open(path, encoding="utf-8") as f:
        was = f.read()
    before = tree.code_before(m.file)
    lines = was.split("\n")
    lines[m.line - 1] = m.new
    try:
        tree.write(m.file, "\n".join(lines))
        if not tree.make(m.file[:-2] + ".o"):
            return "none", "does not compile"
        if tree.code(m.file) == before:
            return "none", "the same code"
        if m.id in known:
            return "none", known[m.id]
        if same_at_the_edge(m, (lines + [""])[m.line]):
            return "none", "equal values: the same"
        by = failing(tree, m)
        return ("noticed", by) if by else ("survived", None)
    finally:
        tree.write(m.file, was)


def all_mutations(pattern):
    found = {}
    for folder in FOLDERS:
        for name in sorted(os.listdir(folder)):
            path = f"{folder}/{name}"
            if not name.endswith(".c"):
                continue
            for m in mutations_of(path):
                if pattern in path or pattern == m.id:
                    found.setdefault(m.id, m)
    return list(found.values())


def stop(*_):
    sys.exit(130)


def main():
    for s in (signal.SIGINT, signal.SIGTERM):  # a shell's background ignores SIGINT
        signal.signal(s, stop)
    build, wanted, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    candidates = all_mutations(sys.argv[4] if len(sys.argv) > 4 else "")
    random.Random(seed).shuffle(candidates)
    known, begun = equivalents(), time.monotonic()
    count = {"noticed": 0, "survived": 0, "none": 0}
    tree = Tree(build)
    try:
        if not tree.make("unit", "e2e", "sessctl", "sim-sctp", "sim-session", "fault"):
            sys.exit("not ok the build without a mutation")
        for m in candidates:
            if count["noticed"] + count["survived"] == wanted:
                break
            how, what = judge(tree, m, known)
            count[how] += 1
            print({"noticed": f"ok {what}: {m}", "survived": f"not ok survived: {m}",
                   "none": f"none, {what}: {m}"}[how], flush=True)
    finally:
        shutil.rmtree(tree.top, ignore_errors=True)
        real = count["noticed"] + count["survived"]
        share = f"{100 * count['noticed'] / real:.1f} %" if real else "none"
        print(f"{share}: {count['noticed']} of {real} mutations noticed, {count['none']} are none; "
              f"of {len(candidates)}, seed {seed}, {time.monotonic() - begun:.0f} s; "
              f"{LEFT_OUT} is left out, only a guest runs it")
    sys.exit(count["survived"] > 0)


if __name__ == "__main__":
    main()
