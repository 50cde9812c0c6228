/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_HOSTPORT_H
#define SESSCTL_HOSTPORT_H
/* HOST:PORT, alone or in a session URI; the host may be an IPv6 address in brackets. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Whether a URI of legal form (ddps_uri_check()) has a host, and a port other than 0. */
bool hostport_has_host(const char *uri);
bool hostport_has_port(const char *uri);

/* A numeric address and port, both there.  Return: 0 or -1. */
int hostport_parse(struct sockaddr_storage *ss, const char *text);

#endif
