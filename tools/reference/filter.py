#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes comments of the public headers what doxygen reads.

filter.py HEADER prints the header with its line numbers as they are.  Functions have comments like
those of the Linux kernel: "name - what it does", "@argument: what it is", "Return: ...".  Comments of
structs, members and constants are plain.  "---- title ----" begins a part of the header.
"""
import pathlib
import re
import sys

GROUPS = {"sessions": r"ctx|session|wr|advert|err|err_codes|version|secure|ddpsess", "watching": r"stats|watch|capture",
          "conform": r"conform\w*", "ipoib": r"(ib|ipoib)_\w+"}
PART = re.compile(r"^/\* ---- (.*) ---- \*/$")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def escape(text):
    """Nothing in a comment is a command or a tag."""
    return re.sub(r"([\\<>#%&$])", r"\\\1", text)


declared_words = set()  # of the header: arguments and members


def named(text):
    """Arguments and members by their names; another @NAME is an example's."""
    return re.sub(r"@(\w+)", lambda m: ("\\p " if m[1] in declared_words else "\\@") + m[1], text)


def prose(text):
    """Arguments and members by their names."""
    return named(escape(text))


def names(match):
    """@one, @two: as an argument of doxygen's."""
    return match[1] + "\\param " + re.sub(r"[ @]", "", match[2]) + " "


def function(text):
    """/** name - text, with arguments and what is returned."""
    text = escape(text)
    text = re.sub(r"^(\s*\*?\s*)\w+ - ", r"\1", text[3:-2], count=1)
    text = re.sub(r"^(\s*\*\s*)@(\w+(?:, @\w+)*):\s*", names, text, flags=re.M)
    text = named(text)
    text = re.sub(r"\bReturn: ", r"\\return ", text, count=1)
    return "/**" + text + "*/"


def plain(text, before):
    """/* text: of what stands in front of it on its line, else of what follows."""
    mark = "/**<" if before.strip() else "/**"
    return mark + prose(text[2:])


def group(path):
    """The group of main.dox that a header is in."""
    name = pathlib.Path(path).stem
    return next(g for g, headers in GROUPS.items() if re.fullmatch(headers, name))


def header(text, whose):
    """The whole of a header, in its group."""
    out, end, part, first = [], 0, False, True
    declared_words.update(re.findall(r"\w+", COMMENT.sub("", text)))
    for match in COMMENT.finditer(text):
        comment = match.group()
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        out.append(text[end : match.start()])
        end = match.end()
        title = PART.match(comment)
        if "SPDX" in comment:
            continue
        if title:
            out.append(("/**@}*/ " if part else "") + f"/** \\name {title[1]} */ /**@{{*/")
            part = True
        elif comment.startswith("/**"):
            out.append(function(comment))
        elif first:
            out.append(f"/** \\file\n\\ingroup {whose}\n" + prose(comment[2:]))
            first = False
        else:
            out.append(plain(comment, before))
    rest = text[end:]
    if part:
        rest = rest.rstrip("\n") + " /**@}*/\n"
    return "".join(out) + rest


with open(sys.argv[1], encoding="utf-8") as file:
    sys.stdout.write(header(file.read(), group(sys.argv[1])))
