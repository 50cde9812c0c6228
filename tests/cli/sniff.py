# SPDX-License-Identifier: BSD-2-Clause
"""Write what passes the loopback of this network namespace to a file, until standard input ends.

usage: sniff.py FILE    It prints a line when it has begun.  No packet that was sent before the end is missing.
"""
import select
import socket
import struct
import sys

OUTGOING = 4  # of <linux/if_packet.h>: each packet of the loopback comes once more as received
WHOLE = 1 << 18

sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
try:
    sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
except PermissionError:  # root of a user namespace
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
sock.bind(("lo", 0))
sock.setblocking(False)
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, WHOLE, 1))
    print("begun", flush=True)
    ends, number = False, 0
    while True:
        try:
            data, address = sock.recvfrom(WHOLE)
        except BlockingIOError:
            if ends:
                break
            ready = select.select([sock, sys.stdin], [], [])[0]
            ends = sys.stdin in ready
            continue
        if address[2] != OUTGOING:
            number += 1
            out.write(struct.pack("<IIII", number // 1000000, number % 1000000, len(data), len(data)) + data)
