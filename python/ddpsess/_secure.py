# SPDX-License-Identifier: BSD-2-Clause
"""Secured wires: who this program is, and who the peer is."""
from __future__ import annotations

import ctypes as c
import os
from typing import Any, NamedTuple, Optional, Union

from . import _headers as h
from . import _lib as l
from ._context import _error, _members, _must


class PeerId(NamedTuple):
    """Who the peer is: ddps_peer_id.  `sha256` is the certificate's; a PSK has none of its members."""

    how: str
    name: str
    names: tuple[str, ...]
    issuer: str
    serial: str
    sha256: bytes
    not_after: int
    version: str
    suite: str
    group: str
    alpn: str


# members of struct ddps_secure_attr
_FILES = _members(h.SecureAttr, "struct_size", "judge", "judge_user", "flags")


class Secure:
    """The files of secured wires: `Secure(cert=..., key=..., ca=...)`, `Secure(psk=...)` or `Secure(settings)`.

    Names are the members of struct ddps_secure_attr.  The files are read here; Error says what is wrong with them.
    """

    def __init__(self, settings: Optional[Union[str, "os.PathLike[str]"]] = None, **files: Any) -> None:
        attr = h.SecureAttr()
        why = h.Error()
        ptr = c.c_void_p()
        self._ptr: Optional[int] = None
        l.lib.ddps_secure_attr_init_sized(c.byref(attr), c.sizeof(attr))
        for name, value in {"settings": settings, **files}.items():
            if name not in _FILES:
                raise TypeError(f"there is no setting {name}: there are {', '.join(sorted(_FILES))}")
            if value is not None:
                setattr(attr, name, os.fsencode(value))
        if l.lib.ddps_secure_open(c.byref(ptr), c.byref(attr), c.byref(why)) < 0:
            raise _error(why)
        self._ptr = ptr.value

    def reload(self) -> None:
        """Read the files now.  If they are wrong what was read before stays in use."""
        why = h.Error()
        if l.lib.ddps_secure_reload(self._ptr, c.byref(why)) < 0:
            raise _error(why)

    def __del__(self) -> None:
        if self._ptr is not None:
            l.lib.ddps_secure_close(self._ptr)


def _check_wire(uri: str, secure: Optional[Secure]) -> None:
    """Credentials are for secured wires, which need them.  A URI of another form is the library's to refuse."""
    wire = uri.partition("://")[0].lower()
    if secure is not None and not isinstance(secure, Secure):
        raise TypeError(f"secure= takes a Secure, such as Secure(settings) of a file, not {type(secure).__name__}")
    if secure is None and wire in ("tls", "sctps"):
        raise ValueError(f"secure= is missing: {uri} needs Secure(cert=..., key=..., ca=...), Secure(psk=...) "
                         "or Secure(settings)")
    if secure is not None and wire in ("tcp", "sctp", "shm"):
        raise ValueError(f"secure= is for tls:// and sctps://: {uri} would be plain")


def _peer_id(read: Any, ptr: Optional[int], what: str) -> Optional[PeerId]:
    """None: the wire is not secured."""
    i = h.PeerId()
    i.struct_size = c.sizeof(i)
    _must(read(ptr, c.byref(i)), what)
    if i.how == h.PEER_NONE:
        return None
    return PeerId("x509" if i.how == h.PEER_X509 else "psk", i.name.decode(), tuple(i.names.decode().splitlines()),
                  i.issuer.decode(), i.serial.decode(), bytes(i.fingerprint), i.not_after, i.version.decode(),
                  i.suite.decode(), i.group.decode(), i.alpn.decode())
