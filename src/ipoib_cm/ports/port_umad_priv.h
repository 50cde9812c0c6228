/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_UMAD_PRIV_H
#define DDPS_PORT_UMAD_PRIV_H
/* What the files of the libibumad port share. */
#include <ddpsess/ib_umad.h>
#include <infiniband/umad.h>

/* The functions of libibumad that are used, found at run time. */

#define DDPS_UMAD_FUNCTIONS(X)                                                                     \
	X(umad_init)                                                                               \
	X(umad_get_ca)                                                                             \
	X(umad_release_ca)                                                                         \
	X(umad_get_port)                                                                           \
	X(umad_release_port)                                                                       \
	X(umad_open_port)                                                                          \
	X(umad_close_port)                                                                         \
	X(umad_get_fd)                                                                             \
	X(umad_register)                                                                           \
	X(umad_size)                                                                               \
	X(umad_get_mad)                                                                            \
	X(umad_get_mad_addr)                                                                       \
	X(umad_status)                                                                             \
	X(umad_set_addr)                                                                           \
	X(umad_set_pkey)                                                                           \
	X(umad_send)                                                                               \
	X(umad_recv)

struct ddps_umad_lib {
	void *handle;
/* NOLINTBEGIN(bugprone-macro-parentheses): members of structs cannot have them */
#define DDPS_X(name) __typeof__(&(name)) name;
	DDPS_UMAD_FUNCTIONS(DDPS_X)
#undef DDPS_X
	/* NOLINTEND(bugprone-macro-parentheses) */
};

/* Return: 0, or DDPS_E_UNSUPPORTED with one sentence in @why. */
int ddps_umad_lib_load(struct ddps_umad_lib *lib, char *why, size_t why_len);
void ddps_umad_lib_unload(struct ddps_umad_lib *lib);

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
