/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_UMAD_PRIV_H
#define DDPS_PORT_UMAD_PRIV_H
/* What the files of the libibumad port share. */
#include <ddpsess/ib_umad.h>
#include "ipoib_cm/ports/port_umad_lib.h"

#define DDPS_UMAD_KEPT 64

struct ddps_umad_stats {
	uint64_t undelivered; /* sends that came back */
	uint64_t overrun;     /* arrived while a path was asked for, and too many to keep */
};

struct ddps_umad_msg {
	ddps_cm_addr from;
	uint8_t mad[DDPS_CM_MAD_LEN];
};

struct ddps_umad {
	struct ddps_umad_lib lib;
	struct ddps_umad_info info;
	struct ddps_umad_stats stats;
	int fd, cm_agent, sa_agent, state;
	void *buf; /* of libibumad, for one message */
	uint32_t sa_tid;
	/* CM messages that came while an answer of the SA was waited for */
	struct ddps_umad_msg kept[DDPS_UMAD_KEPT];
	unsigned first_kept, n_kept;
};

int ddps_umad_put(struct ddps_umad *u, int agent, ddps_cm_addr to, int timeout_ms,
		  const uint8_t mad[DDPS_CM_MAD_LEN]);

/* Return: 1, 0: nothing of use came, or DDPS_E_SYSTEM. */
int ddps_umad_get(struct ddps_umad *u, int timeout_ms, int *agent, struct ddps_umad_msg *m);

/** ddps_umad_stats - Return: the counters of the port, valid until it is closed. */
const struct ddps_umad_stats *ddps_umad_stats(const struct ddps_umad *u);

#endif
