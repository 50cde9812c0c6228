#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""file.py send|receive ADDRESS FILE: one file over TCP, for the receiver's one caller."""
import socket
import sys
import time

PORT = 7300
PATIENCE = 30


def receive(address, path):
    s = socket.create_server((address, PORT))
    s.settimeout(PATIENCE)
    c, _ = s.accept()
    c.settimeout(PATIENCE)
    with open(path, "wb") as f:
        while data := c.recv(65536):
            f.write(data)


def send(address, path):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            c = socket.create_connection((address, PORT), 5)
            break
        except OSError:  # nobody listens yet
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    with open(path, "rb") as f:
        c.sendall(f.read())
    c.close()


{"send": send, "receive": receive}[sys.argv[1]](sys.argv[2], sys.argv[3])
