/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CONFORM_ADAPTER_H
#define SESSCTL_CONFORM_ADAPTER_H
/* An adapter's port as the suite for IPoIB wants it: opened again for each neighbour that it is. */
#include "ipoib/ipoib_port.h"
#include <ddpsess/conform_ipoib.h>

struct adapter {
	const struct ipoib_opts *o;
	struct ipoib_port port;
	bool more; /* of the last turn */
};

/* Return: 0, or -1 and one sentence. */
int adapter_configure(struct adapter *a, uint32_t seed, char *why, size_t why_len);
/* Its calls, with @a as their user. */
struct ddps_conform_ipoib_fabric adapter_fabric(struct adapter *a);

#endif
