/* SPDX-License-Identifier: BSD-2-Clause */
/* libibumad, loaded when it is wanted. */
#include "ipoib_cm/ports/port_umad_priv.h"
#include "ipoib_cm/ports/port_sa.h"
#include <ddpsess/err.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libibumad.so.3"

int ddps_umad_lib_load(struct ddps_umad_lib *lib, char *why, size_t why_len)
{
	void *at;

	lib->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle) {
		snprintf(why, why_len, "%s (Debian package libibumad3) cannot be loaded: %s",
			 LIBRARY, dlerror());
		return DDPS_E_UNSUPPORTED;
	}
/* dlsym() gives an object pointer; copying its octets is what POSIX has in mind for functions. */
#define DDPS_X(name)                                                                               \
	at = dlsym(lib->handle, #name);                                                            \
	if (!at)                                                                                   \
		goto missing;                                                                      \
	memcpy(&lib->name, &at, sizeof(at));
	DDPS_UMAD_FUNCTIONS(DDPS_X)
#undef DDPS_X
	return 0;
missing:
	snprintf(why, why_len, "%s is not what it should be: %s", LIBRARY, dlerror());
	ddps_umad_lib_unload(lib);
	return DDPS_E_UNSUPPORTED;
}

void ddps_umad_lib_unload(struct ddps_umad_lib *lib)
{
	if (lib->handle)
		dlclose(lib->handle);
	lib->handle = NULL;
}

/* ---- the libibumad port: path records ---- */

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
