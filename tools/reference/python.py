#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes python/ddpsess/_headers.py: the structs, constants and functions of public headers for ctypes.

python.py HEADER... prints the module.  Declarations that it does not know end it.
"""
import pathlib
import re
import sys

PLAIN = {"size_t": "c.c_size_t", "bool": "c.c_bool", "int": "c.c_int", "unsigned": "c.c_uint", "char": "c.c_char",
         "double": "c.c_double", **{f"{u}int{n}_t": f"c.c_{u}int{n}" for u in ("u", "") for n in (8, 16, 32, 64)}}
DECLARATOR = re.compile(r"^(\**)\s*(\w*)\s*((?:\[\w*\])*)$")
TYPE = re.compile(r"^(?:const\s+)?((?:struct|enum|union)\s+\w+|\w+)\s*(?:const\b)?\s*(.*)$", re.S)


def class_name(tag):
    """struct ddps_conn_param: ConnParam."""
    return "".join(part.capitalize() for part in tag.removeprefix("ddps_").split("_"))


class Headers:
    """What was read so far."""

    def __init__(self):
        self.constants = {}
        self.structs = {}
        self.functions = {}

    def number(self, text):
        """An integer constant expression of what is known."""
        text = re.sub(r"\b(0x[0-9A-Fa-f]+|\d+)[uUlL]*\b", r"\1", text.strip())
        text = re.sub(r"\bDDPS_\w+", lambda m: str(self.constants[m[0]]), text)
        if not re.fullmatch(r"[-0-9a-fA-Fx<>|()+* ]+", text):
            raise ValueError(text)
        return int(eval(text))  # digits and operators only

    def plain(self, name, pointers, const=False):
        """A type for ctypes.  What is only read can be given as bytes."""
        kind, _, tag = name.partition(" ")
        if pointers:
            if name in ("char", "void") and pointers == 1 and const:
                return "c.c_char_p"
            if pointers == 2:
                return "c.POINTER(c.c_void_p)"
            return f"c.POINTER({class_name(tag)})" if tag in self.structs else "c.c_void_p"
        if kind == "enum":
            return "c.c_int"
        if kind == "struct":
            return class_name(tag) if tag in self.structs else sys.exit(f"{name} is not known")
        return PLAIN[name] if name in PLAIN else sys.exit(f"{name} is not known")

    def declare(self, text):
        """The members of "uint16_t ird, ord" or the argument of "const char *uri": names and types."""
        text = " ".join(text.split()).replace("*const *", "**")
        pointer = re.search(r"\(\*(\w+)\)\(", text)
        if pointer:
            return [(pointer[1], "c.c_void_p")]
        name, rest = TYPE.match(text).groups()
        out = []
        for one in rest.split(","):
            match = DECLARATOR.match(one.strip())
            if not match:
                sys.exit(f"cannot be read: {text}")
            kind = self.plain(name, len(match[1]), text.startswith("const"))
            for length in re.findall(r"\[(\w*)\]", match[3]):
                kind = f"{kind} * {self.number(length or '0')}"
            out.append((match[2], kind))
        return out

    def members(self, tag, body):
        """The fields of a struct; a struct or union in it becomes a class of its own."""
        fields, unnamed = [], []
        while body.strip():
            inner = re.match(r"\s*(struct|union) \{(.*?)\}\s*(\w*);", body, re.S)
            if inner:
                kind, text, name = inner.groups()
                own = f"{tag}_{name or 'u'}"
                self.structs[own] = (kind.capitalize().replace("Struct", "Structure"), *self.members(own, text))
                if not name:
                    unnamed.append("u")
                fields.append((name or "u", class_name(own)))
                body = body[inner.end():]
                continue
            one, _, body = body.partition(";")
            fields += self.declare(one)
        return fields, unnamed

    def read(self, text):
        """A header."""
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
        for name, value in re.findall(r"^#define (DDPS_[A-Z0-9_]+)[ \t]+([^\n\"]+)$", text, re.M):
            try:
                self.constants[name] = self.number(value)
            except (ValueError, KeyError, SyntaxError):
                pass  # a macro of another kind
        for name, value in re.findall(r"\bX\((\w+), (-?\d+),", text):
            self.constants["DDPS_E_" + name] = int(value)
        for match in re.finditer(r"^(struct|enum) ?(\w*) \{(.*?)(?:^| )\};", re.sub(r"^#.*$", "", text, flags=re.M), re.S | re.M):
            kind, tag, body = match.groups()
            if kind == "struct":
                self.structs[tag] = ("Structure", *self.members(tag, body))
            elif "DDPS_ERRORS" not in body:
                last = -1
                for one in filter(None, (part.strip() for part in body.split(","))):
                    name, _, value = one.partition("=")
                    last = self.number(value) if value else last + 1
                    self.constants[name.strip()] = last
        for result, name, arguments in re.findall(r"^DDPS_API ([^;()]*?)(\bddps_\w+)\(([^;]*?)\);", text, re.S | re.M):
            kind = "None" if result.strip() == "void" else self.declare(result)[0][1]
            arguments = [] if arguments.strip() == "void" else re.split(r",(?![^()]*\))", arguments)
            self.functions[name] = ([self.declare(a)[0][1] for a in arguments], kind)

    def module(self, names):
        """The module."""
        out = ["# SPDX-License-Identifier: BSD-2-Clause",
               f'"""Made by tools/reference/python.py of {", ".join(names)}: make python."""',
               "from __future__ import annotations", "", "import ctypes as c", "from typing import Any", ""]
        out += [f"{name.removeprefix('DDPS_')} = {value}" for name, value in self.constants.items()]
        for tag, (base, fields, unnamed) in self.structs.items():
            out += ["", "", f"class {class_name(tag)}(c.{base}):"]
            out += [f"    _anonymous_ = {tuple(unnamed)!r}"] if unnamed else []
            out += ["    _fields_ = ["] + [f'        ("{name}", {kind}),' for name, kind in fields] + ["    ]"]
        out += ["", "", "# name: arguments, result", "FUNCTIONS: dict[str, tuple[list[Any], Any]] = {"]
        for name, (arguments, result) in self.functions.items():
            arguments = [re.sub(r"(.*) \* \d+$", r"c.POINTER(\1)", a) for a in arguments]
            out.append(f'    "{name}": ([{", ".join(arguments)}], {result}),')
        return "\n".join(out + ["}", ""])


headers = Headers()
for path in map(pathlib.Path, sys.argv[1:]):
    headers.read(path.read_text(encoding="utf-8"))
sys.stdout.write(headers.module([pathlib.Path(p).name for p in sys.argv[1:]]))
