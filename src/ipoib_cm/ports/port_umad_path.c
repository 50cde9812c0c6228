/* SPDX-License-Identifier: BSD-2-Clause */
/* The libibumad port: path records. */
#include "ipoib_cm/ports/port_sa.h"
#include "ipoib_cm/ports/port_umad_priv.h"
#include <time.h>

static uint64_t get_umad_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void keep_umad_message(struct ddps_umad *u, const struct ddps_umad_msg *m)
{
	if (u->n_kept == DDPS_UMAD_KEPT) {
		u->stats.overrun++;
		return;
	}
	u->kept[(u->first_kept + u->n_kept++) % DDPS_UMAD_KEPT] = *m;
}

/* Return: as ddps_umad_path(); DDPS_E_TIMEDOUT at @due. */
static int await_answer(struct ddps_umad *u, uint64_t due, struct ddps_sa_path *p)
{
	struct ddps_umad_msg m;
	uint16_t status;
	int agent, res;

	for (;;) {
		uint64_t now = get_umad_ms();

		if (now >= due)
			return DDPS_E_TIMEDOUT;
		res = ddps_umad_get(u, (int)(due - now), &agent, &m);
		if (res < 0)
			return res;
		if (res && agent == u->cm_agent)
			keep_umad_message(u, &m);
		if (!res || agent != u->sa_agent)
			continue;
		res = ddps_sa_path_answer(p, &status, m.mad, u->sa_tid);
		if (res != DDPS_E_AGAIN)
			return res;
	}
}

int ddps_umad_path(struct ddps_umad *u, const uint8_t dgid[DDPS_IPOIB_GID_LEN], unsigned tries,
		   int timeout_ms, struct ddps_sa_path *p)
{
	uint8_t query[DDPS_CM_MAD_LEN];
	int res = DDPS_E_TIMEDOUT;

	for (unsigned i = 0; i < tries && res == DDPS_E_TIMEDOUT; i++) {
		ddps_sa_path_query(query, ++u->sa_tid, u->info.gid, dgid);
		/* the kernel passes an answer on only while it waits for one */
		res = ddps_umad_put(u, u->sa_agent,
				    (uint64_t)u->info.sm_lid | (uint64_t)u->info.sm_sl << 16,
				    timeout_ms, query);
		if (!res)
			res = await_answer(u, get_umad_ms() + (uint64_t)timeout_ms, p);
	}
	return res;
}
