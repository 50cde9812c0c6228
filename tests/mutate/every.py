#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""All mutations of changes.py, in one program: each function is there once for each change of one of its
lines, and a number says which one is called.  So nothing is compiled for a mutation alone, and a test takes
a millisecond.

FOLDER is made, with a tree that has the mutated sources, and kept for the next time.  The unit tests that
enter a function are shown its mutations, then by ASan's, and then simulations have a look at what is left.  With
--all those have the rest of what make check has for the wires: the long unit tests, longer simulations, the
calls that fail, the end-to-end tests, and the conformance cases.  FOLDER/survived.tsv has what survives,
FOLDER/score.tsv how many of each folder.  Exit status: 0 if no folder is below its floor (changes.py).
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

import changes

JOBS = int(os.environ.get("JOBS", "2"))
FUNCTIONS = 4096  # as every.c has
SHOWN = ("Makefile", "mk", "tests", "tools", "bench", "include", "man", "examples")
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)+")
Function = collections.namedtuple("Function", "name head first brace last number")


def sources():
    for folder in changes.FOLDERS:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".c"):
                yield f"{folder}/{name}"


def names_of(params):
    """The names of the parameters, or None where they cannot be handed on."""
    depth, parts = 0, [""]
    for c in params:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    parts = [p.strip() for p in parts]
    if parts == ["void"]:
        return []
    if "..." in parts:
        return None
    return [(re.search(r"\(\*(\w+)\)", p) or re.search(r"(\w+)(?:\[[^]]*\])*$", p)).group(1) for p in parts]


def functions_of(lines):
    """Each definition of a file: where its head and its body are."""
    codes = changes.without_comments("\n".join(lines)).split("\n")
    for brace, code in enumerate(codes):
        if not code.startswith("{"):
            continue
        first = brace
        while codes[first - 1].strip() and not codes[first - 1].startswith("#") and \
                not codes[first - 1].rstrip().endswith((";", "}")):
            first -= 1
        last = next(i for i in range(brace, len(codes)) if codes[i].startswith("}"))
        head = ATTRIBUTE.sub("", " ".join(c.strip() for c in codes[first:brace])).strip()
        yield Function(re.search(r"(\w+)\(", head).group(1), head, first, brace, last, None)


def copies(lines, fn, mutations):
    """The function once for each mutation, and one of its name that calls the one that is wanted."""
    head = "\n".join(lines[fn.first:fn.brace])
    open_at = fn.head.index(fn.name + "(") + len(fn.name)
    names = names_of(fn.head[open_at + 1:fn.head.rindex(")")])
    is_void = re.match(r"(static )?(inline )?(_Noreturn )?void \w+\(", fn.head)
    static = "" if re.match(r"(\w+ )*static ", fn.head) else "static "

    def one(number, body):
        renamed = re.sub(rf"\b{fn.name}\(", f"{fn.name}__{number}(", head, count=1)
        return [static + renamed, *body]

    body = lines[fn.brace:fn.last + 1]
    out, where = one(0, body), {}
    for number, m in mutations:
        changed = list(body)
        changed[m.line - 1 - fn.brace] = m.new
        where[number] = (len("\n".join(out).split("\n")), len(body) + len(head.split("\n")))
        out += one(number, changed)
    given = ", ".join(names)
    call = "%s(%s); return;" if is_void else "return %s(%s);"
    out += [head, "{", f"\tddps_entered[{fn.number}] = 1;", "\tswitch (ddps_mutation) {"]
    out += [f"\tcase {number}: {call % (f'{fn.name}__{number}', given)}" for number, _ in mutations]
    out += ["\tdefault: " + call % (f"{fn.name}__0", given), "\t}", "}"]
    return out, where


class Every:
    def __init__(self, folder, variant="every", only=None):
        self.folder, self.variant, self.only = folder, variant, only
        self.top = os.path.abspath(os.path.join(folder, "tree"))
        self.mutations, self.function = {}, {}
        self.left_out = []

    def number(self):
        """A number for each mutation and each function; 0 is what was there."""
        self.of_file = collections.defaultdict(lambda: collections.defaultdict(list))
        self.functions, count, seen = {}, 0, set()
        for path in sources():
            with open(path, encoding="utf-8") as f:
                lines = f.read().split("\n")
            fns = []
            for fn in functions_of(lines):
                count += 1
                fns.append(fn._replace(number=count))
            self.functions[path] = (lines, fns)
            for m in changes.mutations_of(path):
                if m.id in seen or (self.only is not None and m.id not in self.only):
                    continue
                seen.add(m.id)
                n = len(self.mutations) + 1
                fn = next((f for f in fns if f.brace < m.line <= f.last + 1), None)
                self.mutations[n] = m
                if fn is None or names_of(fn.head[fn.head.index("(") + 1:fn.head.rindex(")")]) is None:
                    self.left_out.append(n)
                    continue
                self.function[n] = fn.number
                self.of_file[path][fn.number].append(n)

        if count >= FUNCTIONS:
            sys.exit(f"{count} functions, and every.c has room for {FUNCTIONS}")

    def write_file(self, path, without):
        """Returns the line at which each mutation's copy begins, and its length."""
        lines, fns = self.functions[path]
        out, at, where = [], 0, {}
        out.append("extern int ddps_mutation; extern unsigned char *ddps_entered;")
        for fn in fns:
            numbers = [n for n in self.of_file[path][fn.number] if n not in without]
            if not numbers:
                continue
            out += lines[at:fn.first]
            begun = len("\n".join(out).split("\n"))
            text, at_line = copies(lines, fn, [(n, self.mutations[n]) for n in numbers])
            where.update({n: (begun + a, l) for n, (a, l) in at_line.items()})
            out += "\n".join(text).split("\n")
            at = fn.last + 1
        out += lines[at:]
        self.put(path, "\n".join(out))
        return where

    def put(self, path, text):
        """Nothing is written that is there already, so that make has less to do."""
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                if f.read() == text:
                    return
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def compile_file(self, path):
        """What cannot be compiled is taken out; it stays known while the file is as it is."""
        text = "\n".join(self.functions[path][0])
        text += "".join(self.mutations[n].id for numbers in self.of_file[path].values() for n in numbers)
        note = os.path.join(self.folder, "compiled", path.replace("/", "-") + hashlib.sha1(text.encode()).hexdigest())
        if os.path.exists(note):
            with open(note, encoding="utf-8") as f:
                without = set(f.read().split())
            without = {n for numbers in self.of_file[path].values() for n in numbers
                       if self.mutations[n].id in without}
            self.write_file(path, without)
            return without
        without = self.try_file(path)
        os.makedirs(os.path.dirname(note), exist_ok=True)
        with open(note, "w", encoding="utf-8") as f:
            f.write(" ".join(self.mutations[n].id for n in without))
        return without

    def try_file(self, path):
        without = set()
        while True:
            where = self.write_file(path, without)
            p = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Iinclude", "-Isrc", "-w", "-fsyntax-only",
                                "-fmax-errors=0", path], cwd=self.top, capture_output=True, text=True)
            if p.returncode == 0:
                return without
            wrong = {int(x) for x in re.findall(rf"^{re.escape(path)}:(\d+):\d+: error", p.stderr, re.M)}
            bad = {n for n, (first, length) in where.items() if any(first <= w < first + length + 1 for w in wrong)}
            if not bad:
                sys.exit(f"{path}: {p.stderr[:2000]}")
            without |= bad

    def make_tree(self):
        os.makedirs(self.top, exist_ok=True)
        for name in SHOWN:
            link = os.path.join(self.top, name)
            if not os.path.islink(link):
                os.symlink(os.path.abspath(name), link)
        for base, _, names in os.walk("src"):
            for name in names:
                path = os.path.join(base, name)
                if path not in self.functions and not name.endswith((".o", ".d")):
                    with open(path, encoding="utf-8") as f:
                        self.put(path, f.read())
        self.put("src/common/every.c", "extern int ddps_mutation; extern unsigned char *ddps_entered;\n"
                 "#include <stdlib.h>\nint ddps_mutation; static unsigned char there[4096];\n"
                 "unsigned char *ddps_entered = there;\n"
                 "__attribute__((constructor)) static void set(void)\n"
                 '{ const char *s = getenv("DDPS_MUTATION"); if (s) ddps_mutation = atoi(s); }\n')
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for bad in pool.map(self.compile_file, self.functions):
                for n in bad:
                    self.function.pop(n)
                    del self.mutations[n]

    def build(self, *programs):
        targets = [f"build/{self.variant}/{t}" for t in programs]
        p = subprocess.run(["make", "-s", f"-j{JOBS}", f"VARIANT={self.variant}", "WERROR=", "CFLAGS=-w", *targets],
                           cwd=self.top)
        if p.returncode:
            sys.exit("not ok the build of all mutations")

    def shown(self, program, numbers, suites=(), long=False):
        """Numbers that no test of this program notices."""
        table = "".join(f"{n} {self.function[n]}\n" for n in numbers)
        survived, done = [], 0
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=1", **({"EVERY_LONG": "1"} if long else {}))
        p = subprocess.Popen([f"build/{self.variant}/{program}", str(JOBS), *suites], cwd=self.top, env=env,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        p.stdin.write(table)
        p.stdin.close()
        with open(os.path.join(self.folder, program + ".tsv"), "w", encoding="utf-8") as out:
            for line in p.stdout:
                number, how = line.split()[:2]
                done += 1
                if how == "survived":
                    survived.append(int(number))
                out.write(f"{self.mutations[int(number)].id}\t{line}")
                out.flush()
        if p.wait() or done != len(numbers):
            sys.exit(f"not ok {program}: {done} of {len(numbers)} were judged")
        return survived

    def program(self, numbers, limit, *command):
        """Numbers that this program does not notice."""
        def status(n):
            try:
                return subprocess.run(command, cwd=self.top, env=dict(os.environ, DDPS_MUTATION=str(n)),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=limit,
                                      stderr=subprocess.DEVNULL, check=False).returncode
            except subprocess.TimeoutExpired:
                return None

        def noticed(n):
            # a machine that is busy makes a program wait, too: then it is as slow without the change
            is_so = status(n)
            return status(0) == 0 if is_so is None else is_so != 0
        if numbers and status(0) != 0:
            print(f"# left out: {command[0]}, which fails or takes longer than {limit} s without a change")
            return numbers
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return [n for n, yes in zip(numbers, pool.map(noticed, numbers)) if not yes]

    def really(self, numbers):
        """Numbers whose mutation does not compile to what was there."""
        def of(path, text):
            with tempfile.TemporaryDirectory() as folder:
                name = os.path.join(folder, "a.c")
                with open(name, "w", encoding="utf-8") as f:
                    f.write(text)
                subprocess.run(["gcc", "-std=gnu11", "-O2", "-fPIC", "-D_GNU_SOURCE", "-Iinclude", "-Isrc",
                                "-I" + os.path.dirname(path), "-w", "-c", "-o", name + ".o", name], check=True)
                with open(name + ".o", "rb") as f:
                    return f.read()

        def same(n):
            m = self.mutations[n]
            lines = list(self.functions[m.file][0])
            lines[m.line - 1] = m.new
            return of(m.file, "\n".join(lines)) == self.plain[m.file]
        self.plain = {f: of(f, "\n".join(self.functions[f][0])) for f in {self.mutations[n].file for n in numbers}}
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return [n for n, yes in zip(numbers, pool.map(same, numbers)) if not yes]


def is_edge(e, n):
    m = e.mutations[n]
    return changes.same_at_the_edge(m, e.functions[m.file][0][m.line])


def begun(what, numbers, since):
    print(f"# {time.monotonic() - since:.0f} s: {what}, {len(numbers)} mutations", flush=True)


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    p.add_argument("folder")
    p.add_argument("pattern", nargs="*", default=[], help="part of a file's name, a function, or an id; none: all")
    p.add_argument("--from", dest="ids", help="a file with an id in front of each line: these alone")
    p.add_argument("--number", type=int, help="so many of them, by --seed")
    p.add_argument("--each", type=int, help="so many of each folder, by --seed")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--suites", type=lambda s: s.split(","), default=[],
                   help="prefixes of unit tests, with commas: these alone, and nothing else")
    p.add_argument("--all", action="store_true", help="everything: minutes for what survives the rest")
    return p.parse_intermixed_args()


def chosen(e, args):
    """Numbers of the mutations that are asked for."""
    ids = set(args.pattern)
    if args.ids:
        with open(args.ids, encoding="utf-8") as f:
            ids |= {line.split()[0] for line in f if line.strip()}
    every = not args.pattern and not args.ids
    asked = [n for n, m in e.mutations.items() if n in e.function and
             (every or m.id in ids or m.function in ids or any(p in m.file for p in args.pattern))]
    # By their ids: code that is added or goes leaves the rest of a sample as it was.
    asked.sort(key=lambda n: hashlib.sha1(f"{args.seed} {e.mutations[n].id}".encode()).digest()
               if args.number or args.each else b"")
    if args.each:
        asked = [n for folder in changes.FOLDERS
                 for n in [n for n in asked if os.path.dirname(e.mutations[n].file) == folder][:args.each]]
    return asked[:args.number]


def sanitized(e, left):
    """What the same tests do not notice either with ASan, UBSan and LeakSanitizer, as make check runs them."""
    strict = Every(os.path.join(e.folder, "asan"), "everyasan", {e.mutations[n].id for n in left})
    strict.number()
    strict.make_tree()
    strict.build("unit-every")
    ids = {strict.mutations[n].id for n in strict.shown("unit-every", list(strict.function))}
    return [n for n in left if e.mutations[n].id in ids]


SHORT, LONG = ("unit-every", "sim-sctp", "sim-session"), ("fault", "e2e-every", "sessctl")


def is_sctp(e, n):
    return "/sctp" in e.mutations[n].file


def by_simulations(e, left, associations, sessions):
    sctp = [n for n in left if is_sctp(e, n)]
    other = [n for n in left if not is_sctp(e, n)]
    left = e.program(sctp, 60, f"build/{e.variant}/sim-sctp", "1", associations) + other
    return e.program(left, 90, f"build/{e.variant}/sim-session", "1", sessions)


def steps(e, args):
    """What is done, one after the other, with what is left."""
    yield "unit tests", lambda left: e.shown("unit-every", left, args.suites)
    if args.suites:
        return
    yield "the compiler", e.really
    yield "unit tests with sanitizers", lambda left: sanitized(e, left)
    yield "simulations", lambda left: by_simulations(e, left, "3000", "1000")
    if not args.all:
        return
    yield "calls that fail", lambda left: e.program(left, 240, f"build/{e.variant}/fault")
    yield "long unit tests", lambda left: e.shown("unit-every", left, long=True)
    yield "long simulations", lambda left: by_simulations(e, left, "20000", "4000")
    yield "end-to-end tests", lambda left: e.shown("e2e-every", left, long=True)
    for wire in "sctp", "tcp":
        yield f"conformance cases over {wire}", lambda left, w=wire: e.program(
            left, 400, f"build/{e.variant}/sessctl", "conform", "--self", w, "--json")


def score(e, real, left):
    """Prints and keeps how many of each folder were noticed; whether no folder is below its floor."""
    tried, survived = ([os.path.dirname(e.mutations[n].file) for n in numbers] for numbers in (real, left))
    good = True
    with open(os.path.join(e.folder, "score.tsv"), "w", encoding="utf-8") as f:
        for folder, floor in changes.floors().items():
            of, lost = tried.count(folder), survived.count(folder)
            if not of:
                continue
            below = changes.is_below(floor, of, lost)
            good = good and not below
            print(f"{'not ok' if below else 'ok'} {folder}: {100 * (of - lost) / of:.1f} % of {of} are noticed, "
                  f"at least {changes.least_share(of, lost):.1f} % of all by what a sample of so many says, "
                  f"the floor is {floor}" + (": survived.tsv has the others, which need a test" if below else ""))
            f.write(f"{folder}\t{of - lost}\t{of}\n")
    print(f"# {100 * (len(real) - len(left)) / max(len(real), 1):.1f} %: {len(real) - len(left)} of {len(real)}")
    return good


def main():
    args, since = arguments(), time.monotonic()
    e = Every(args.folder)
    e.number()
    e.make_tree()
    begun("build", e.function, since)
    e.build(*SHORT[:1 if args.suites else None], *(LONG if args.all else ()))
    asked = chosen(e, args)
    real = left = [n for n in asked if not is_edge(e, n)]
    for what, step in steps(e, args):
        begun(what, left, since)
        before, left = left, step(left)
        if step == e.really:
            real = [n for n in real if n in left or n not in before]
    with open(os.path.join(args.folder, "survived.tsv"), "w", encoding="utf-8") as f:
        for n in left:
            m = e.mutations[n]
            f.write(f"{m.id}\t{m.file}:{m.line}\t{m.function}\t{m.old.strip()}\t{m.new.strip()}\n")
            if len(left) < 50:
                print(f"# survived: {m}")
    good = score(e, real, left)
    print(f"# {len(asked) - len(real)} of {len(asked)} change nothing; {time.monotonic() - since:.0f} s; "
          f"{changes.LEFT_OUT} is left out, only a guest runs it")
    sys.exit(not good)


if __name__ == "__main__":
    main()
