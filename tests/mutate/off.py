#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks and steps of the stack that can be switched off by name, so that a test shows that it needs them.

A list has a line for each, with tabs in between; its first column says what is off:

    FUNCTION: does nothing | returns VALUE
    FUNCTION: never WORD | always WORD      the condition, or the operand of && or ||, that WORD stands in
    FUNCTION: never if WORD | always if WORD  ... all of the condition of that if or while
    FUNCTION: without WORD                  the statement that WORD stands in
    FUNCTION: WORD as VALUE                 another value for that name, member or call
    FUNCTION: all WORD as VALUE             ... wherever it stands
    FUNCTION: before WORD do CODE | after WORD do CODE	   next to the statement that WORD stands in
    FUNCTION: begins with CODE

A function is named without its file, and a WORD (a call, a member, a constant) without its line: the rest of the
function and of the tree may change as it likes.  If it stands in several conditions or statements of the
function, WORD/2 is the second one.  "and" parts what is off together.

usage: off.py check LIST...		each is there; what to do if one is not
       off.py tree FOLDER BUILD LIST...	a tree in FOLDER, and the finished BUILD, in which DDPS_OFF=N switches off
					what line N of all lists has (comments are not counted), and 0 nothing
"""

import collections
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import changes  # noqa: E402

TREE = ("Makefile", "mk", "src", "include", "tools", "tests")
HEAD = ("extern char *getenv(const char *); extern int atoi(const char *); static int ddps_off; "
        "__attribute__((constructor)) static void ddps_off_read(void) "
        '{ const char *s = getenv("DDPS_OFF"); if (s) ddps_off = atoi(s); }\n')
OPENS, CLOSES = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
Place = collections.namedtuple("Place", "path begin end")  # of a body, in the text: { and }


class Missing(Exception):
    pass


def tokens_of(text):
    return [(m.group(), m.start(), m.end()) for m in changes.TOKEN.finditer(changes.without_comments(text))]


def definitions():
    """Function: where its definitions are."""
    found = collections.defaultdict(list)
    for base, _, names in os.walk("src"):
        for name in names:
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.join(base, name)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            code = changes.without_comments(text)
            for m in re.finditer(r"^\{.*?^\}", code, re.M | re.S):
                head = re.split(r"[;}]\n|^#.*\n|\n\n", code[:m.start()], flags=re.M)[-1]
                fn = re.search(r"(\w+)\((?!\()", re.sub(r"__attribute__\(\(.*?\)\)+", "", head))
                if fn:
                    found[fn.group(1)].append(Place(path, m.start(), m.end()))
    return found


def partner(t, i):
    """The index of the bracket that belongs to that at i."""
    step = 1 if t[i][0] in OPENS else -1
    depth = 0
    while True:
        depth += (t[i][0] in OPENS) - (t[i][0] in CLOSES)
        if depth == 0:
            return i
        i += step


def words_at(t, words):
    """The first and the last token, of all places where these words are."""
    want = [w for w, _, _ in tokens_of(words)]
    return [(i, i + len(want) - 1) for i in range(len(t) - len(want) + 1)
            if [w for w, _, _ in t[i:i + len(want)]] == want]


def only(t, words, around=lambda t, at: at):
    """What is around these words; several may stand in the same."""
    words, _, nth = words.partition("/") if re.fullmatch(r".*\w/\d", words) else (words, "", "")
    places = words_at(t, words)
    if nth and len(places) >= int(nth):
        return around(t, places[int(nth) - 1])
    found = {around(t, at) for at in places}
    if nth or len(found) != 1:
        raise Missing(f"has {words} {len(places)} times")
    return found.pop()


def edge(t, i, step, ends):
    """From i on to where one of ends is, or the bracket around; brackets are walked over."""
    while True:
        i += step
        if t[i][0] in ends:
            return i
        if t[i][0] in (OPENS if step > 0 else CLOSES):
            if t[i][0] in "{}":
                return i
            i = partner(t, i)
        elif t[i][0] in OPENS or t[i][0] in CLOSES:
            return i


ENDS = {"&&", "||", "?", ":", ",", ";", "=", "return"}


def operand(t, at):
    """First and last token of the condition that tokens `at` stand in."""
    first, last = at
    while True:
        a, b = edge(t, first, -1, ENDS), edge(t, last, 1, ENDS)
        around = t[a][0] == "("
        if t[a][0] in ("&&", "||") or t[b][0] in ("&&", "||") or (around and t[a - 1][0] in ("if", "while")) or \
                (t[a][0] in ("return", "=", ";", ",", "(") and t[b][0] == "?") or \
                (t[a][0] in ("return", "=") and t[b][0] == ";") or (t[a][0] == ";" and t[b][0] == ";"):
            return a + 1, b - 1
        while t[a][0] not in OPENS:
            a = edge(t, a, -1, {})
            if t[a][0] in "{};":
                raise Missing("has no condition there")
        if t[a][0] == "{":
            raise Missing("has no condition there")
        first, last = a, partner(t, a)


def whole(t, at):
    i = at[0]
    while not (t[i][0] == "(" and t[i - 1][0] in ("if", "while")):
        i = edge(t, i, -1, {})
        if t[i][0] == "{":
            raise Missing("has no if there")
    return i + 1, partner(t, i) - 1


def statement(t, at):
    first, last = at[0], edge(t, at[1], 1, {";"})
    while t[last][0] != ";":  # in a call of another one
        last = edge(t, last, 1, {";"})
    while True:
        a = edge(t, first, -1, {";", "else", ":"})
        if t[a][0] == "(" and t[a - 1][0] in ("if", "while", "for", "switch"):
            raise Missing("has no statement there")
        if t[a][0] in ("(", "["):
            first = a
            continue
        break
    a += 1
    while t[a][0] in ("if", "while", "for"):
        a = partner(t, a + 1) + 1
    return a, last


def value(t, at):
    """The postfix expression that ends with the word, and with what it is called with."""
    first, last = at
    while t[first - 1][0] in ("->", "."):
        first -= 2
        while t[first][0] in CLOSES:
            first = partner(t, first) - (re.fullmatch(r"\w+", t[partner(t, first) - 1][0]) is not None)
    while t[last + 1][0] in ("(", "["):
        last = partner(t, last + 1)
    return first, last


def changed(body, what):
    """The body with one thing off; Missing says why it cannot be."""
    if what == "does nothing":
        return "{ return; }"
    if what.startswith("returns "):
        return "{ return %s; }" % what[8:]
    if what.startswith("begins with "):
        return "{ %s %s}" % (what[12:], body)
    t = tokens_of(body)
    added = re.fullmatch(r"(before|after) (.*?) do (.*)", what)
    if added:
        a, b = only(t, added.group(2), statement)
        there = body[t[a][1]:t[b][2]]
        text = "{ %s }" % " ".join((added.group(3), there)[::1 if added.group(1) == "before" else -1])
    elif " as " in what:
        old, new = what.split(" as ")
        if old.startswith("all "):
            return re.sub(rf"\b{old[4:]}\b", f"({new})", body)
        (a, b), text = only(t, old, value), f"({new})" if re.search(r"\W", new) else new
    else:
        m = re.fullmatch(r"(never|always)( if)? (.*)|(without) (.*)", what)
        if not m:
            sys.exit(f"off.py: what is this? {what}")
        if m.group(4):
            (a, b), text = only(t, m.group(5), statement), ";"
        else:
            (a, b) = only(t, m.group(3), whole if m.group(2) else operand)
            text = "(0)" if m.group(1) == "never" else "(1)"
    return body[:t[a][1]] + text + body[t[b][2]:]


def labels(body, number):
    """A body may stand in a function twice: its labels may not."""
    code = changes.without_comments(body)
    for name in set(re.findall(r"\bgoto (\w+);", code)):
        body = re.sub(rf"\b{name}(?=;|:)", f"{name}_{number}", body)
    return body


def rows(lists):
    n = 0
    for path in lists:
        with open(path, encoding="utf-8") as f:
            for at, line in enumerate(f, 1):
                if line.strip() and not line.startswith("#"):
                    n += 1
                    yield n, f"{path}:{at}", line.split("\t")[0].strip()


def points(spec):
    """(function, what) of each; a part without a function is of the one before."""
    fn = None
    for part in spec.split(" and "):
        m = re.match(r"(\w+): ", part)
        fn, what = (m.group(1), part[m.end():]) if m else (fn, part)
        if not fn:
            sys.exit(f"off.py: no function is in front: {spec}")
        yield fn, what


def resolved(lists):
    """Place: the bodies of it that have something off, by number; and what could not be found."""
    where, texts, bodies, wrong = definitions(), {}, collections.defaultdict(dict), []
    for n, at, spec in rows(lists):
        for fn, what in points(spec):
            found, why = [], f"has {what.split()[-1]} no times"
            for p in where.get(fn, []):
                if p.path not in texts:
                    with open(p.path, encoding="utf-8") as f:
                        texts[p.path] = f.read()
                try:
                    found.append((p, changed(bodies[p].get(n, texts[p.path][p.begin:p.end]), what)))
                except Missing as e:
                    why = str(e)
            if len(found) == 1:
                bodies[found[0][0]][n] = found[0][1]
            elif not where.get(fn):
                wrong.append(f"{at}: there is no {fn}() in src: if it has another name now, write that here "
                             f"(sed -i 's/\\<{fn}\\>/NEW/' {at.split(':')[0]})")
            else:
                wrong.append(f"{at}: {fn}() {'is there more than once' if found else why}, and \"{what}\" needs just one: "
                             f"name what the test needs now (tests/mutate/off.py says how)")
    return texts, bodies, wrong


def write_tree(folder, build, lists):
    texts, bodies, wrong = resolved(lists)
    if wrong:
        sys.exit("\n".join(f"not ok {w}" for w in wrong))
    os.makedirs(os.path.dirname(os.path.join(folder, build)), exist_ok=True)
    # Times are kept, so that make compiles only what has something to switch off.
    subprocess.run(["cp", "-a", "--parents", *TREE, build, folder], check=True)
    by_file = collections.defaultdict(list)
    for p, of in bodies.items():
        by_file[p.path].append((p, of))
    for path, changes_of in by_file.items():
        text = texts[path]
        for p, of in sorted(changes_of, key=lambda c: -c[0].begin):
            body = "".join(f"if (ddps_off == {n})\n{labels(b, n)} else " for n, b in of.items())
            text = text[:p.begin] + "{" + body + text[p.begin:p.end] + "}" + text[p.end:]
        first = min(p.begin for p, _ in changes_of)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
            f.write(HEAD + "#line 1\n" + text if first else text)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "check":
        _, bodies, wrong = resolved(sys.argv[2:])
        for w in wrong:
            print(f"not ok {w}")
        if not wrong:
            print(f"ok each of {len(list(rows(sys.argv[2:])))} checks and steps can be switched off, "
                  f"in {len(bodies)} functions")
        sys.exit(bool(wrong))
    if len(sys.argv) < 5 or sys.argv[1] != "tree":
        sys.exit(__doc__)
    write_tree(sys.argv[2], sys.argv[3].rstrip("/"), sys.argv[4:])


if __name__ == "__main__":
    main()
