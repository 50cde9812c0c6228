# SPDX-License-Identifier: BSD-2-Clause
"""An iWARP responder that is broken in one way: prints its port, and serves until it is killed.

usage: broken_peer.py KIND
  echo     sends back what it gets: no iWARP at all
  close    closes every connection at the set-up
  silent   accepts, and says nothing
  dead     sets a session up, and says nothing in it
  crc      computes another checksum than MPA's, for what it sends
  hostile  answers with markup and control characters
  partial  stops in the middle of its MPA Reply
  reserved sets reserved bits in its MPA Reply
  rubbish  sets a session up, and answers in it with what is no FPDU
  wrongrev answers the set-up with an MPA revision that does not exist
"""

import socket
import struct
import sys
import threading
import zlib

RUBBISH = bytes(range(0x7A, 0xBA))
MARKUP = b"<script>alert(1)</script>&\"'\x1b[31m\x00\xff\xef\xbf\xbf]]>"


def read(conn, length):
    data = b""
    while len(data) < length:
        more = conn.recv(length - len(data))
        if not more:
            raise OSError("closed")
        data += more
    return data


def drain(conn):
    while conn.recv(4096):
        pass


def set_up(conn, rev=None, bits=0):
    frame = read(conn, 20)
    private = read(conn, struct.unpack(">H", frame[18:])[0])
    enhanced = frame[17] == 2 and len(private) >= 4
    flags = 0x40 | (0x10 if enhanced else 0) | bits
    answer = private[:4] if enhanced else b""
    rev = rev or frame[17]
    conn.sendall(b"MPA ID Rep Frame" + bytes([flags, rev]) + struct.pack(">H", len(answer)) + answer)


def wrong_fpdu(segment):
    fpdu = struct.pack(">H", len(segment)) + segment
    fpdu += bytes(-len(fpdu) % 4)
    return fpdu + struct.pack("<I", zlib.crc32(fpdu))


def answer_reads(conn):
    while True:
        length = struct.unpack(">H", read(conn, 2))[0]
        segment = read(conn, length + (-(length + 2) % 4) + 4)[:length]
        if segment[1] & 15 == 1 and length >= 46:
            sink = segment[18:30]
            conn.sendall(wrong_fpdu(bytes([0xC1, 0x42]) + sink))


def serve(conn, kind):
    try:
        if kind == "echo":
            while data := conn.recv(4096):
                conn.sendall(data)
        elif kind == "silent":
            drain(conn)
        elif kind == "dead":
            set_up(conn)
            drain(conn)
        elif kind == "crc":
            set_up(conn)
            answer_reads(conn)
        elif kind == "hostile":
            conn.sendall(MARKUP)
            drain(conn)
        elif kind == "partial":
            read(conn, 20)
            conn.sendall(b"MPA ID R")
            drain(conn)
        elif kind == "reserved":
            set_up(conn, bits=0x01)
            drain(conn)
        elif kind == "rubbish":
            set_up(conn)
            read(conn, 2)
            conn.sendall(RUBBISH)
            drain(conn)
        elif kind == "wrongrev":
            set_up(conn, rev=9)
            drain(conn)
    except OSError:
        pass
    conn.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        conn, _ = listener.accept()
        threading.Thread(target=serve, args=(conn, sys.argv[1]), daemon=True).start()


main()
