#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An OCI image from scratch: the bundle in /ddpsess, the C library for it, and copy.

usage: image.py VERSION EPOCH OUT.tar ARCH BUNDLE.tar.gz LIBC-ROOT COPY [ARCH ...]
Writes an OCI layout as a tar file, with one image for each processor: the same octets each time.
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

LOADER = {"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}
TRIPLE = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LIBC = ["libc.so.6", "libdl.so.2", "libpthread.so.0"]
NOBODY = "65534:65534"


class Archive:
    """A tar file whose octets depend on nothing but what is put in."""

    def __init__(self, epoch):
        self.file, self.epoch, self.folders = io.BytesIO(), epoch, set()
        self.tar = tarfile.open(fileobj=self.file, mode="w", format=tarfile.USTAR_FORMAT)

    def add(self, name, data=None, mode=0o644):
        """A file, or a folder if there is no data; folders above it are made."""
        above = os.path.dirname(name)
        if above and above not in self.folders:
            self.add(above, mode=0o755)
        info = tarfile.TarInfo(name)
        info.mtime, info.mode = self.epoch, mode
        if data is None:
            self.folders.add(name)
            info.type = tarfile.DIRTYPE
            self.tar.addfile(info)
        else:
            info.size = len(data)
            self.tar.addfile(info, io.BytesIO(data))

    def take(self, tar, member):
        """A file, a folder or a link of another archive."""
        if member.isfile():
            self.add(member.name, tar.extractfile(member).read(), member.mode)
        elif member.isdir():
            self.add(member.name, mode=member.mode)
        elif member.issym() or member.islnk():
            info = tarfile.TarInfo(member.name)
            info.mtime, info.mode, info.type, info.linkname = self.epoch, 0o777, member.type, member.linkname
            self.tar.addfile(info)
        else:
            sys.exit(f"image.py: {member.name}: neither a file nor a folder nor a link, which an image cannot have")

    def octets(self):
        self.tar.close()
        return self.file.getvalue()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def layer(epoch, arch, bundle, libc, copy):
    to = Archive(epoch)
    with tarfile.open(bundle) as tar:
        for m in tar:
            to.take(tar, m)
    for name in LIBC:
        to.add(f"lib/{TRIPLE[arch]}/{name}", read(f"{libc}/lib/{TRIPLE[arch]}/{name}"), 0o755)
    to.add(LOADER[arch], read(f"{libc}/{LOADER[arch]}"), 0o755)
    to.add("usr/share/doc/libc6/copyright", read(f"{libc}/usr/share/doc/libc6/copyright"))
    to.add("bin/copy", read(copy), 0o755)
    to.add("tmp", mode=0o1777)
    return to.octets()


def main():
    if len(sys.argv) < 8 or len(sys.argv) % 4:
        sys.exit("image.py: for each processor there are four arguments: ARCH BUNDLE.tar.gz LIBC-ROOT COPY")
    version, epoch, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    archive, manifests = Archive(epoch), []

    def blob(data, kind, **more):
        digest = hashlib.sha256(data).hexdigest()
        archive.add(f"blobs/sha256/{digest}", data)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}",
                "size": len(data), **more}

    def text(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    rest = sys.argv[4:]
    for arch, bundle, libc, copy in zip(*[iter(rest)] * 4):
        files = layer(epoch, arch, bundle, libc, copy)
        config = {"architecture": arch, "os": "linux", "created": made,
                  "config": {"Entrypoint": ["/ddpsess/bin/sessctl"], "Cmd": ["--help"], "User": NOBODY,
                             "Env": ["PATH=/ddpsess/bin:/bin"], "WorkingDir": "/",
                             "Labels": {"org.opencontainers.image.title": "ddpsess",
                                        "org.opencontainers.image.version": version}},
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]}}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": blob(text(config), "config.v1+json"),
                    "layers": [blob(gzip.compress(files, 9, mtime=0), "layer.v1.tar+gzip")]}
        manifests.append(blob(text(manifest), "manifest.v1+json",
                              platform={"architecture": arch, "os": "linux"}))
    index = blob(text({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                       "manifests": manifests}), "index.v1+json",
                 annotations={"org.opencontainers.image.ref.name": version})
    archive.add("oci-layout", text({"imageLayoutVersion": "1.0.0"}))
    archive.add("index.json", text({"schemaVersion": 2, "manifests": [index]}))
    with open(out, "wb") as f:
        f.write(archive.octets())


main()
