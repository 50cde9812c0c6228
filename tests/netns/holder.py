#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Holds a UDP port until it is ended.  usage: holder.py ADDRESS PORT
import signal
import socket
import sys

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind((sys.argv[1], int(sys.argv[2])))
    print("held", flush=True)
    signal.pause()
