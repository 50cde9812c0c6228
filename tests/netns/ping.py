#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ping.py ADDRESS OCTETS: one echo there and back, the IP packet of that size and not split.

Repeats a lost one for 15 seconds. Exit status 0: answered with the same octets; 3: the kernel
knows a smaller path MTU (EMSGSIZE); 1: no answer.
"""
import errno
import os
import select
import socket
import struct
import sys
import time


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def main():
    address, size = sys.argv[1], int(sys.argv[2])
    v6 = ":" in address
    body = os.urandom((size - (48 if v6 else 28)) & ~1)
    ident = os.getpid() & 0xFFFF
    if v6:
        s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        s.setsockopt(socket.IPPROTO_IPV6, 23, 2)  # IPV6_MTU_DISCOVER: do
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: do
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    s.connect((address, 0))
    request, reply = (128, 129) if v6 else (8, 0)
    end = time.monotonic() + 15
    while time.monotonic() < end:
        head = struct.pack("!BBHHH", request, 0, 0, ident, 1)
        if not v6:
            head = struct.pack("!BBHHH", request, 0, checksum(head + body), ident, 1)
        try:
            s.send(head + body)
        except OSError as e:
            if e.errno == errno.EMSGSIZE:
                return 3
            if e.errno not in (errno.EHOSTUNREACH, errno.ECONNREFUSED):
                raise
        until = time.monotonic() + 0.3
        while (left := until - time.monotonic()) > 0 and select.select([s], [], [], left)[0]:
            try:
                data = s.recv(70000)
            except OSError:
                continue  # an ICMP error, the next send shows what it means
            data = data if v6 else data[20:]
            if data[0] == reply and data[4:8] == head[4:8] and data[8:] == body:
                return 0
    return 1


sys.exit(main())
