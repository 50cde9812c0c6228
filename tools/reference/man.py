#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a manual page for each public function, in the format of scdoc.

man.py OUT LIBRARY HEADER... makes OUT/FUNCTION.3.scd of the comments that begin with "name - what it
does", and OUT/STRUCT.3.scd of each struct and enum, with its members; where a function has that name, its
page has the struct, too.  Where a page says DDPS_NAME_*, it has the constants that begin so.  The first comment of a header is about all of it, and becomes
OUT/ddpsess_HEADER.3.scd.
"""
import pathlib
import re
import sys

DECLARED = r"(?:(?:DDPS_API|static inline)[^;{]*[;{]\n?)"
COMMENT = re.compile(r"/\*\*\s((?:[^*]|\*(?!/))*)\*/\s*(" + DECLARED + "+)")
FIRST = re.compile(r"^/\*\n(.*?)\*/", re.S | re.M)
EXPERIMENTAL = re.compile(r"Experimental: .*?(?=\n \*(?:/|\n))", re.S)
NAMES = re.compile(r"^\w+(, \w+)* - ")
TYPE = re.compile(r"(?:^/\*((?:[^*]|\*(?!/))*)\*/\n)?^((struct|enum) (ddps_\w+) \{(?:[^\n]*|\n(?:[^#\n][^\n]*\n|\n)*?)\};)", re.M)
LIST = re.compile(r"^#define (DDPS_\w+)\(X\)((?:[^\n]*\\\n)*[^\n]*)\n", re.M)
NOTE = r"/\*((?:[^*]|\*(?!/))*)\*/"
CONSTANT = re.compile(rf"(?:^{NOTE}\n)?^#define (DDPS_\w+)[ \t]+([\w\"]+)[ \t]*(?:{NOTE})?$", re.M)
GROUP = re.compile(r"\b(DDPS_[A-Z_]+_)\*(?!/)")
OF_LIST = re.compile(r"^#define DDPS_X\(([^)]*)\) (.*)\n\t(\w+)\(DDPS_X\)\n#undef DDPS_X\n", re.M)
ARGUMENT = re.compile(r"^@(\w+(?:, @\w+)*):\s*(.*)$")


declared_words = set()  # of the header at hand


def bare(comment):
    """The lines of a comment without its stars."""
    return [re.sub(r"^\s*\*? ?", "", line).rstrip() for line in comment.strip().split("\n")]


def escape(text):
    """Text that scdoc takes as it is, with arguments and members underlined; another @NAME is an example's."""
    text = re.sub(r"([\\*_`\[\]#~<>])|^(?=[-.])", r"\\\1", text)
    return re.sub(r"@((?:\w|\\_)+)", lambda m: f"_{m[1]}_" if m[1].replace("\\", "") in declared_words else m[0], text)


def flow(lines):
    """Lines of a comment as scdoc: one paragraph, and an item for each "- " in it."""
    parts = [""]
    for line in lines:
        if line.startswith("- "):
            parts.append(line[2:])
        else:
            parts[-1] = f"{parts[-1]} {line}".strip()
    text = [escape(parts[0]), ""] if parts[0] else []
    return "\n".join(text + ["- " + escape(part) for part in parts[1:]]).rstrip("\n")


def split(lines):
    """What a comment says: the first sentence, arguments, paragraphs, what is returned."""
    text = "\n".join(lines).replace("  Return: ", "\nReturn: ")
    brief, arguments, body, returns = [], [], [[]], []
    into = brief
    for line in text.split("\n"):
        argument = ARGUMENT.match(line)
        if argument:
            arguments.append((argument[1].replace("@", ""), [argument[2]]))
            into = arguments[-1][1]
        elif into is brief and brief and line[:1].isupper() and brief[-1][-1] not in ",;":
            into = body[-1]
            into.append(line)
        elif line.startswith("Return: "):
            into = returns
            into.append(line[8:])
        elif line:
            into.append(line.strip())
        elif into is not returns:
            if body[-1]:
                body.append([])
            into = body[-1]
    return " ".join(brief), arguments, [p for p in body if p], returns


def expand(text):
    """A header whose structs and enums have the members that its lists X(name, ...) give them, with their words."""
    lists = {name: re.findall(r"\bX\(((?:[^()\"]|\"[^\"]*\")*)\)", body) for name, body in LIST.findall(text)}

    def lines(match):
        out = []
        for entry in lists[match[3]]:
            *values, words = re.split(r",\s*(?=\")", entry) if '"' in entry else [entry, ""]
            values = [v.strip() for v in ",".join(values).split(",")]
            one = match[2]
            for argument, value in zip(match[1].split(", "), values):
                one = re.sub(rf"(##)?\b{argument}\b", value, one)
            out.append(f"\t{one}" + (f" /* {words[1:-1]} */" if words else "") + "\n")
        return "".join(out)

    return OF_LIST.sub(lines, text)


def members(code):
    """The text of a struct or enum, as a block of code."""
    return ["```"] + [line.expandtabs(8).replace("\\", "\\\\") for line in code.split("\n")] + ["```"]


def constants_of(text, constants):
    """A section with the constants of each group that a text names: their values, and what is said of them."""
    out = []
    for group in dict.fromkeys(GROUP.findall(text)):
        those = [c for c in constants if c[1].startswith(group)]
        if len(those) > 1 and not any(above or behind for above, _, _, behind in those[1:]):
            out += [flow(bare(those[0][0])), ""]  # it is about all of them
            those = [("", name, value, behind) for _, name, value, behind in those]
        for above, name, value, behind in those:
            parts = "\n".join(bare(behind or above)).split("\n\n")
            said = ["\t" + escape(part.replace("\n", " ")) for part in parts if part]
            out += [f"*{escape(name)}* ({value.rstrip('u')})"] + ["\n\n".join(said)] * bool(said) + [""]
    return ["# CONSTANTS", ""] + out if out else []


def type_page(header, library, kind, comment, users, constants):
    """One struct or enum: what is said of it, and its members."""
    what, code, name = kind
    said = " ".join(bare(comment)).strip()
    brief = re.split(r"[.:;] |[.:;]$", said)[0] if said else f"a type of ddpsess/{header}"
    out = [f"{name}(3)", "", "# NAME", "", f"{name} - {what}: {escape(brief[0].lower() + brief[1:])}", ""]
    out += ["# SYNOPSIS", "", "```", f"#include <ddpsess/{header}>", "```", ""] + members(code) + [""]
    out += [f"Part of _lib{library}_.", ""]
    if said:
        out += ["# DESCRIPTION", "", flow(bare(comment)), ""]
    out += constants_of(comment + code, constants)
    out += ["# SEE ALSO", "", ", ".join(f"*{escape(n)}*(3)" for n in ["ddpsess_" + header[:-2]] + users), ""]
    return "\n".join(out)


def page(header, library, warning, types, comment, declared, others, constants):
    """One function, or several that share a comment."""
    declared = [re.sub(r"\s+", " ", d).strip() for d in re.split(r"[;{]", declared) if d.strip()]
    names = [re.search(r"(ddps_\w+)\(", d)[1] for d in declared]
    brief, arguments, body, returns = split(bare(comment))
    brief = NAMES.sub("", brief)
    out = [f"{names[0]}(3)", "", "# NAME", "", f"{', '.join(names)} - {escape(brief)}", ""]
    out += ["# SYNOPSIS", "", "```", f"#include <ddpsess/{header}>", ""]
    out += [re.sub(r"^(DDPS_API|static inline) ", "", d) + ";" for d in declared]
    out += ["```", "", f"Link with _-l{library}_.", ""]
    if arguments:
        out += ["# ARGUMENTS", ""]
        for argument, text in arguments:
            out += [f"*{escape(argument)}*", "\t" + escape(" ".join(text)), ""]
    if body or warning:
        out += ["# DESCRIPTION", ""] + ([escape(warning), ""] if warning else [])
        for paragraph in body:
            out += [flow(paragraph), ""]
    out += constants_of(comment, constants)
    if returns:
        returns[0] = returns[0][0].upper() + returns[0][1:]
        out += ["# RETURN VALUE", "", flow(returns), ""]
    others = sorted(set(re.findall(r"(?:struct|enum) (ddps_\w+)", " ".join(declared))) & types) + others
    near = [f"*{escape(n)}*(3)" for n in dict.fromkeys(others) if n not in names]
    whole = "ddpsess_" + header[:-2]
    out += ["# SEE ALSO", "", ", ".join([f"*{escape(whole)}*(3)"] + near), ""]
    return names, "\n".join(out)


def code(line):
    """A line of an example: scdoc takes a backslash for an escape there, too."""
    return line[1:].expandtabs(8).replace("\\", "\\\\")


def paragraphs(text):
    """The first comment of a header as scdoc: paragraphs, and examples that a tab begins."""
    out, example = [], False
    for line in re.sub(r"^ \* ?", "", text, flags=re.M).rstrip().split("\n"):
        if line.startswith("\t") and not example:
            out.append("```")
        if example and not line.startswith("\t") and line:
            out.append("```")
        example = line.startswith("\t") or (example and not line)
        out.append(code(line) if example else escape(line))
    return out + (["```"] if example else [])


def overview(header, library, text, functions, named):
    """All of a header."""
    name = "ddpsess_" + header[:-2]
    first = FIRST.search(text)
    lines = paragraphs(first[1]) if first else ["The version of the library."]
    brief = re.sub(r"[.:].*", "", " ".join(lines), flags=re.S)
    out = [f"{name}(3)", "", "# NAME", "", f"{name} - {brief}", "", "# SYNOPSIS", ""]
    out += ["```", f"#include <ddpsess/{header}>", "```", "", f"Link with _-l{library}_.", ""]
    out += ["# DESCRIPTION", ""] + lines + ["", "# FUNCTIONS", ""]
    for function, what in functions:
        out += [f"*{escape(function)}*(3)", "\t" + escape(what), ""]
    if named:
        out += ["# STRUCTURES", "", ", ".join(f"*{escape(t)}*(3)" for t in named), ""]
    return name, "\n".join(out)


def main(out, library, *headers):
    """Write the pages; further names of a page are links to it."""
    out = pathlib.Path(out)
    types = {t[3] for path in headers for t in TYPE.findall(expand(pathlib.Path(path).read_text(encoding="utf-8")))}
    constants = [c for path in headers for c in CONSTANT.findall(pathlib.Path(path).read_text(encoding="utf-8"))]
    for path in map(pathlib.Path, headers):
        text = expand(path.read_text(encoding="utf-8"))
        declared_words.clear()
        declared_words.update(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))
        found = COMMENT.findall(text)
        firsts = [re.search(r"(ddps_\w+)\(", declared)[1] for _, declared in found]
        functions = []
        warning = EXPERIMENTAL.search(text)
        warning = warning and re.sub(r"\s*\n \* ", " ", warning[0])
        for place, (comment, declared) in enumerate(found):
            near = firsts[max(0, place - 3) : place + 4]
            names, content = page(path.name, library, warning, types, comment, declared, near, constants)
            (out / f"{names[0]}.3.scd").write_text(content, encoding="utf-8")
            for other in names[1:]:
                (out / f"{other}.3").write_text(f".so man3/{names[0]}.3\n", encoding="utf-8")
            brief = NAMES.sub("", split(bare(comment))[0])
            functions += [(name, brief) for name in names]
        for comment, code, what, name in TYPE.findall(text):
            users = [f for (_, declared), f in zip(found, firsts) if re.search(rf"{what} {name}\b", declared)]
            if name in firsts:
                with open(out / f"{name}.3.scd", "a", encoding="utf-8") as file:
                    file.write("\n".join(["", f"# {what.upper()}", ""] + members(code)) + "\n")
            else:
                content = type_page(path.name, library, (what, code, name), comment, users[:8], constants)
                (out / f"{name}.3.scd").write_text(content, encoding="utf-8")
        if found:
            name, content = overview(path.name, library, text, functions,
                                     [t[3] for t in TYPE.findall(text)])
            (out / f"{name}.3.scd").write_text(content, encoding="utf-8")


main(*sys.argv[1:])
