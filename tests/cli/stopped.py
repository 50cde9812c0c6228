#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sessctl conform against a listener that says nothing and, N times, stops the tester while it waits.

usage: stopped.py N STOP_MS SESSCTL [OPTION...]
The exit status is that of sessctl; what it prints goes where ours does.
"""
import os
import signal
import socket
import subprocess
import sys
import time


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def stop(child, ms):
    """Once it sleeps, it does not run for so long: that is the matter, and no synchronisation."""
    while state(child.pid) != "S":
        time.sleep(0.001)
    os.kill(child.pid, signal.SIGSTOP)
    time.sleep(ms / 1000)
    os.kill(child.pid, signal.SIGCONT)


def main():
    times, ms, sessctl, *options = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(0.2)
        with subprocess.Popen(
            [sessctl, "conform", *options, f"tcp://127.0.0.1:{port}"]
        ) as child:
            held, left = [], int(times)
            while child.poll() is None:
                try:
                    peer, _ = listener.accept()
                except TimeoutError:
                    continue
                held.append(peer)
                peer.settimeout(10)
                peer.recv(1)
                if left:
                    stop(child, int(ms))
                    left -= 1
            return child.returncode


sys.exit(main())
