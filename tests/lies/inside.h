/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIES_INSIDE_H
#define LIES_INSIDE_H
/* What the files of wrapped functions share. */
#include "conform/peer/sctp_packet.h"
#include "lies/lies.h"

/* The linker gives calls of f to __wrap_f, and f itself is __real_f. */
#define WRAPPED(f)                                                                                 \
	__typeof__(f) __real_##f;                                                                  \
	__typeof__(f) __wrap_##f

/* Whether it is now that @kind has to lie; @where is what about. */
bool lie_now(enum lie_kind kind, const char *where);
unsigned lie_way(void);
/* This thread hears lies, too. */
void lie_hear(void);
/* Whether the call @name of the system fails now: with @err. */
bool lie_call_fails(const char *name, int err);
/* A case begins. */
void lie_shared_begin(void);

enum { LIE_SHARED_WAYS = 17 };

#endif
