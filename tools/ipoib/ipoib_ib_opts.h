/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_IPOIB_IB_OPTS_H
#define SESSCTL_IPOIB_IB_OPTS_H
/* The options of sessctl ipoib that a port of an InfiniBand subnet in UDP needs. */
#include "ipoib/ipoib.h"
#include <ddpsess/ib_udp.h>

/*
 * --udp, --sa, --link-mtu, --qkey, --lifetime, --pkey, --partition; the rest of @c keeps its
 * defaults, and GID, queue pair and seed are the caller's to set.  Return: 0, or -1 with a sentence
 * in @why.
 */
int ib_opts_configure(struct ddps_ib_udp_config *c, const struct ipoib_opts *o, char *why,
		      size_t why_len);

#define IPOIB_DEVICE_LEN 32

/* KIND, KIND:DEVICE or KIND:DEVICE:PORT; "" and 0: any.  Return: 0 or -1. */
int ib_opts_device(const char *text, const char *kind, char device[IPOIB_DEVICE_LEN], int *port);

/* What to try if the port cannot be opened for that errno; NULL: no idea. */
const char *ib_opts_advice(int err);

#endif
