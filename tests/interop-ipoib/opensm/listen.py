#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Listens in a group and prints what comes.  usage: listen.py GROUP ADDRESS-OF-THE-INTERFACE"""
import socket
import sys

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4000))
s.setsockopt(
    socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(sys.argv[1]) + socket.inet_aton(sys.argv[2])
)
while True:
    print(s.recv(100).decode(), flush=True)
