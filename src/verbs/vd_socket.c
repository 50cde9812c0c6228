/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own sockets.  librspreload turns every socket of a program into an rsocket, which
 * is a connection of this library: its sockets must come from the system, so that its calls of
 * socket() are linked to this one (ld --wrap).  Calls on descriptors that are no rsockets pass.
 */
#include "verbs/vd.h"
#include <sys/syscall.h>
#include <unistd.h>

int __wrap_socket(int domain, int type, int protocol);

int __wrap_socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, domain, type, protocol);
}
