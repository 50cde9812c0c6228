/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PORT_UMAD_LIB_H
#define DDPS_PORT_UMAD_LIB_H
/* The functions of libibumad that are used, found at run time. */
#include <infiniband/umad.h>

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

#endif
