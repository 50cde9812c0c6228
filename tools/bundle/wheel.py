#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Python wheel with the libraries and sessctl inside, by zipfile alone.

usage: wheel.py VERSION EPOCH GLIBC ARCH BUNDLE-FOLDER LIBDDPSESS FOLDER
The same octets each time; prints the name of the file.
"""
import base64
import hashlib
import os
import sys
import time
import zipfile

METADATA = """Metadata-Version: 2.1
Name: ddpsess
Version: {version}
Summary: RDMA sessions over TCP and SCTP for asyncio, and RDMA devices for programs without the hardware
License: BSD-2-Clause
Requires-Python: >=3.8
"""
WHEEL = """Wheel-Version: 1.0
Generator: ddpsess
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY = "[console_scripts]\nsessctl = ddpsess.__main__:main\n"


def main():
    version, epoch, glibc, arch, bundle, library, folder = sys.argv[1:]
    when = time.gmtime(int(epoch))[:6]
    tag = f"py3-none-manylinux_{glibc.replace('.', '_')}_{arch}"
    info = f"ddpsess-{version}.dist-info"
    files = {f"{info}/METADATA": (METADATA.format(version=version).encode(), 0o644),
             f"{info}/WHEEL": (WHEEL.format(tag=tag).encode(), 0o644),
             f"{info}/entry_points.txt": (ENTRY.encode(), 0o644)}

    def take(path, name, mode=None):
        with open(path, "rb") as f:
            files[name] = (f.read(), mode or (0o755 if os.access(path, os.X_OK) else 0o644))

    for name in sorted(os.listdir("python/ddpsess")):
        if name.endswith(".py") or name == "py.typed":
            take(f"python/ddpsess/{name}", f"ddpsess/{name}", 0o644)
    for at, _, names in os.walk(bundle):
        for name in names:
            path = os.path.join(at, name)
            take(path, "ddpsess/bundle/" + os.path.relpath(path, bundle))
    take(library, "ddpsess/bundle/lib/libddpsess.so.1", 0o755)

    record = ""
    for name, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = ((record + f"{info}/RECORD,,\n").encode(), 0o644)

    out = os.path.join(folder, f"ddpsess-{version}-{tag}.whl")
    with zipfile.ZipFile(out, "w") as wheel:
        for name, (data, mode) in sorted(files.items(), key=lambda f: (f[0].startswith(info), f[0])):
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16, 3
            wheel.writestr(entry, data)
    print(f"{out}: {os.path.getsize(out) // 1024} KiB")


main()
