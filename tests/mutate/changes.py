# SPDX-License-Identifier: BSD-2-Clause
"""Changes of one operator, constant or statement of the wires, for every.py, and the score that each folder needs.

floors.tsv has the folders, each with the least part of its changes that has to be noticed, in per cent.  The
rest are mostly changes that change nothing that anyone could see.  The id of a change is made of the file, the
function and the lines before and after.
"""

import hashlib
import math
import os
import re

# What only a guest runs: on most hosts the kernel has no SCTP, and no suite here would notice.
LEFT_OUT = "src/sctp_ddp/backend/kernel"
CHANCE = 0.0001  # how seldom a run may say that a folder is below its floor if it is not
SURE = 0.05  # how seldom a sample may promise more than all changes keep
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


def floors():
    """Folder: the least per cent."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "floors.tsv")
    with open(path, encoding="utf-8") as f:
        rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {folder: float(floor) for folder, floor in rows}


def chance_of_fewer(share, tried, survived):
    """How often fewer than that survive, of so many, where this part of all is noticed."""
    p = 1 - share
    return sum(math.exp(math.lgamma(tried + 1) - math.lgamma(k + 1) - math.lgamma(tried - k + 1) +
                        k * math.log(p) + (tried - k) * math.log(1 - p)) for k in range(survived))


def is_below(floor, tried, survived):
    """Whether that many survivors are too many: so many would be rarer than CHANCE at the floor itself.
    A run of all changes is held to the floor but for a handful, a few at random by what they can show."""
    return 1 - chance_of_fewer(floor / 100, tried, survived) < CHANCE


def least_share(tried, survived):
    """The per cent of all changes that are noticed at least, if one sample in twenty may mislead: with a lower
    share, so few survivors as these or fewer would be rarer than that."""
    low, high = 0.0, 1.0
    for _ in range(40):
        share = (low + high) / 2
        low, high = (low, share) if chance_of_fewer(share, tried, survived + 1) > SURE else (share, high)
    return 100 * low


FOLDERS = list(floors())
