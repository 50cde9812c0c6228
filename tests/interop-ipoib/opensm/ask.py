#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a subnet administration by libibumad, and prints a line for each question: its name, the status of the
answer, and what of it does not depend on addresses.  usage: ask.py PEER-GID"""
import ctypes
import socket
import struct
import sys

CDLL = ctypes.CDLL
CDLL("libibumad.so.3", mode=ctypes.RTLD_GLOBAL)
lib = CDLL(None, use_errno=True)  # so that what is preloaded comes first


class Port(ctypes.Structure):
    _fields_ = [
        ("ca", ctypes.c_char * 20),
        *[(n, ctypes.c_int) for n in ("num", "lid", "lmc", "sm_lid", "sm_sl", "state", "phys", "rate", "caps")],
        ("prefix", ctypes.c_uint64),
        ("guid", ctypes.c_uint64),
        ("n_pkeys", ctypes.c_uint),
        ("pkeys", ctypes.c_void_p),
        ("link", ctypes.c_char * 20),
    ]


lib.umad_size.restype = ctypes.c_size_t
lib.umad_get_mad.restype = ctypes.c_void_p
port = Port()
if lib.umad_init() < 0 or lib.umad_get_port(None, 0, ctypes.byref(port)):
    sys.exit("no port")
ME = struct.pack("=QQ", port.prefix, port.guid)
PEER = socket.inet_pton(socket.AF_INET6, sys.argv[1])
fd = lib.umad_open_port(None, 0)
agent = lib.umad_register(fd, 3, 2, 1, None)
if fd < 0 or agent < 0:
    sys.exit("the port cannot be opened")
HEAD = lib.umad_size()
buf = ctypes.create_string_buffer(HEAD + 65536)
tid = 0


def ask(method, attr, mask, record):
    """The answer as octets; None: silence."""
    global tid
    tid += 1
    mad = struct.pack(">BBBBHHQHHI", 1, 3, 2, method, 0, 0, tid, attr, 0, 0) + bytes(12)
    mad += struct.pack(">QHHQ", 0, 0, 0, mask) + record
    ctypes.memset(buf, 0, len(buf))
    ctypes.memmove(lib.umad_get_mad(buf), mad.ljust(256, b"\0"), 256)
    lib.umad_set_addr(buf, port.sm_lid, 1, 0, 0x80010000 - (1 << 32))
    lib.umad_set_pkey(buf, 0)
    if lib.umad_send(fd, agent, buf, 256, 700, 0) < 0:
        return None
    while True:
        size = ctypes.c_int(65536)
        if lib.umad_recv(fd, buf, ctypes.byref(size), 1000) < 0:
            return None
        got = ctypes.string_at(lib.umad_get_mad(buf), size.value)
        if lib.umad_status(buf):
            return None
        if got[12:16] == mad[12:16]:
            return got


PATH = dict(
    dgid=(1 << 2, 8, 16), sgid=(1 << 3, 24, 16), dlid=(1 << 4, 40, 2), slid=(1 << 5, 42, 2), hop=(1 << 8, 47, 1),
    tclass=(1 << 9, 48, 1), one=(3 << 11, 49, 1), pkey=(1 << 13, 50, 2), sl=(1 << 15, 52, 2), mtu=(3 << 16, 54, 1),
    rate=(3 << 18, 55, 1), life=(3 << 20, 56, 1), best_mtu=(1 << 16, 54, 1), best_rate=(1 << 18, 55, 1),
)  # fmt: skip
MEMBER = dict(
    mgid=(1, 0, 16), port=(2, 16, 16), qkey=(4, 32, 4), mlid=(8, 36, 2), mtu=(3 << 4, 38, 1), tclass=(1 << 6, 39, 1),
    pkey=(1 << 7, 40, 2), rate=(3 << 8, 42, 1), life=(3 << 10, 43, 1), sl=(1 << 12, 44, 4), flow=(1 << 13, 44, 4),
    hop=(1 << 14, 44, 4), join=(1 << 16, 48, 1),
)  # fmt: skip


def fill(fields, **values):
    """Component mask and record."""
    mask, rec = 0, bytearray(200)
    for name, v in values.items():
        bit, at, size = fields[name]
        mask |= bit
        for i, octet in enumerate(v if isinstance(v, bytes) else v.to_bytes(size, "big")):
            rec[at + i] |= octet
    return mask, bytes(rec)


def show(name, got, *facts):
    if got is None:
        print(name + ": silence")
        return
    status = struct.unpack(">H", got[4:6])[0]
    rec, out = got[56:], []
    if not status and "path" in facts:
        out = [f"reversible {rec[49] >> 7} sl {rec[53] & 15} hop {rec[47]} tclass {rec[48]} mtu {rec[54]:#x}"]
    if not status and "group" in facts:
        out = [f"qkey {rec[32:36].hex()} pkey {rec[40:42].hex()} mtu {rec[38]:#x} join {rec[48] & 15}"]
        out += [f"sl, flow, hop {rec[44:48].hex()}"]
    print(f"{name}: status {status:#x} method {got[3]:#x}", *out)


def path(name, method=1, **values):
    base = dict(dgid=PEER, sgid=ME, one=0x81)
    base.update(values)
    values = {k: v for k, v in base.items() if v is not None}
    show("path " + name, ask(method, 0x35, *fill(PATH, **values)), *["path"] * (method == 1 and "dgid" in values))


def group(name, method, *facts, **values):
    show("group " + name, ask(method, 0x38, *fill(MEMBER, **values)), *facts)


def inform(name, on, trap, gid=bytes(16), lid=0xFFFF, generic=1):
    rec = struct.pack(">16sHHHBBHHII", gid, lid, 0, 0, generic, on, 0xFFFF, trap, 1 << 8 | 18, 0xFFFFFF)
    show("subscribe " + name, ask(2, 3, 0, rec.ljust(200, b"\0")))


LINK = bytes.fromhex("ff12401bffff000000000000ffffffff")
G = bytes.fromhex("ff12401bffff0000000000000e010203")
GET, SET, TABLE, DELETE = 1, 2, 0x12, 0x15
JOIN = dict(mgid=G, port=ME, join=1, pkey=0xFFFF)
NEW = dict(JOIN, qkey=0xB1B, sl=0, flow=0, tclass=0)
ALL = dict(NEW, hop=0, mtu=0x84)
OTHER = socket.inet_pton(socket.AF_INET6, "fe80::dead")
FOREIGN = socket.inet_pton(socket.AF_INET6, "fec0::1")

group("join the link", SET, "group", mgid=LINK, port=ME, join=1, pkey=0xFFFF)
path("of the link", pkey=0xFFFF)
path("as a limited member", pkey=0x7FFF)
path("without a P_Key")
path("of no partition", pkey=0x8123)
path("to nobody", dgid=OTHER)
path("to another prefix", dgid=FOREIGN)
path("from nobody", sgid=OTHER)
path("from anywhere", sgid=None)
path("without a number", one=None)
for what, v in (("above the largest", 0x05), ("that there is not", 0x85), ("below the least", 0x41), ("of 512", 0x82)):  # fmt: skip
    path("with an MTU " + what, mtu=v)
path("with the largest MTU", best_mtu=0xC0)
path("with a rate above all", rate=0x12)
path("with a rate below all", rate=0x42)
path("with the largest rate", best_rate=0xC0)
path("with no life", life=0x41)
path("with SL 5", sl=5)
path("to the group", dgid=LINK)
path("to itself", dgid=ME)
path("from another", sgid=PEER, dgid=ME)
path("to another LID", dlid=0x77)
path("from another LID", slid=0x77)
path("as a table", TABLE)
group("of an MGID", GET, "group", mgid=LINK)
group("that there is not", GET, mgid=G)
group("of an MLID", GET, "group", mlid=0xC000)
group("of a port", GET, mgid=LINK, port=ME)
group("of another P_Key", GET, mgid=LINK, pkey=0x8002)
group("as a table", TABLE)
group("join an absent one", SET, **JOIN)
group("send to an absent one", SET, **dict(JOIN, join=4))
group("send and count, to an absent one", SET, "group", **dict(ALL, join=8))
group("send no more", DELETE, mgid=G, port=ME, join=8)
group("make one without an MTU", SET, "group", **NEW)
group("leave it", DELETE, mgid=G, port=ME, join=1)
group("leave it again", DELETE, mgid=G, port=ME, join=1)
group("not receiving, make one", SET, **dict(ALL, join=2))
group("make one", SET, "group", **ALL)
group("join it again", SET, "group", **ALL)
for what, v in (("Q_Key", dict(qkey=0x1234)), ("SL", dict(sl=3 << 28)), ("class", dict(tclass=9)),
                ("flow", dict(flow=9 << 8)), ("hop limit", dict(hop=9)), ("P_Key", dict(pkey=0x8002)),
                ("MTU", dict(mtu=0x85)), ("MTU below the least", dict(mtu=0x41)), ("rate", dict(rate=0x8A))):  # fmt: skip
    group("join with another " + what, SET, **dict(ALL, **v))
group("join as a limited member", SET, "group", **dict(ALL, pkey=0x7FFF))
group("join for nothing", SET, **dict(JOIN, join=0))
group("join from another prefix", SET, **dict(JOIN, port=FOREIGN))
group("leave what was not joined", DELETE, mgid=G, port=ME, join=4)
group("leave the new one", DELETE, mgid=G, port=ME, join=1)
group("make one without a name", SET, "group", **dict(ALL, mgid=bytes(16)))
for what, mgid in (("a port's GID", OTHER), ("scope 0", b"\xff\x10" + G[2:]), ("scope 1", b"\xff\x11" + G[2:]),
                   ("another scope", b"\xff\x15" + G[2:])):  # fmt: skip
    group("make one of " + what, SET, **dict(ALL, mgid=mgid))
for what, v in (("no MTU", dict(mtu=0x80)), ("an MTU above all", dict(mtu=0x05)), ("another Q_Key", dict(qkey=1)),
                ("another SL", dict(sl=3 << 28)), ("a hop limit", dict(hop=255))):  # fmt: skip
    group("make one with " + what, SET, **dict(ALL, **v))
group("make one as a limited member", SET, **dict(ALL, mgid=G[:15] + b"\x99", pkey=0x7FFF))
for what, attr, method in (("node", 0x11, TABLE), ("port", 0x12, TABLE), ("manager", 0x18, TABLE)):
    show(f"records of a {what}", ask(method, attr, 0, bytes(200)))
    show(f"record of this {what}", ask(GET, attr, 1, struct.pack(">H", port.lid).ljust(200, b"\0")))
show("class", ask(GET, 1, 0, bytes(200)))
show("record of a service", ask(SET, 0x31, 0, bytes(200)))
show("an attribute that there is not", ask(GET, 0x99, 0, bytes(200)))
show("a method that there is not", ask(0x0B, 0x35, 0, bytes(200)))
inform("to new groups", 1, 66)
inform("to new groups again", 1, 66)
inform("to gone groups", 1, 67)
inform("to all", 1, 0xFFFF)
inform("to ports", 1, 64)
inform("to links", 1, 128)
inform("to a range of LIDs", 1, 66, lid=1)
inform("to one GID", 1, 66, gid=PEER)
inform("to a vendor's", 1, 66, generic=0)
inform("with a value of 2", 2, 66)
inform("to gone groups no more", 0, 67)
inform("to all no more", 0, 0xFFFF)
