/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIES_H
#define LIES_H
#include <stdbool.h>
#include <stddef.h>
#include "conform/peer/sctp_packet.h"

/* What is reported wrongly to the tester.  Each kind has ways, numbered from 0. */
enum lie_kind {
	LIE_SEGMENT, /* the n-th DDP segment */
	LIE_MPA,     /* the n-th half of an MPA frame, or other octets of TCP */
	LIE_CHUNK,   /* the n-th session chunk */
	LIE_WC,	     /* the n-th completion */
	LIE_EVENT,   /* the n-th event */
	LIE_CALL,    /* the n-th call of the library's: it returns the opposite */
	LIE_INFO,    /* the n-th answer of ddps_ep_info() */
	LIE_MEMORY,  /* the target's memory, behind the n-th segment, answer or completion */
	LIE_PACKET,  /* the n-th packet of SCTP */
	LIE_SHARED,  /* the n-th look at the memory that the target shares, or what comes with it */
	LIE_FAILS,   /* the n-th system call fails */
	LIE_SLOW,    /* the n-th system call does little: interrupted, or not now */
	LIE_NO_MEMORY /* the n-th allocation fails */
};

/* The next run of a case is lied to so. */
void lie_begin(enum lie_kind kind, unsigned way, unsigned n);
/* From here on the truth.  Return: whether the lie was reported. */
bool lie_end(void);
/* What it was: for messages. */
const char *lie_text(void);
/* The number of ways of a kind. */
unsigned lie_ways(enum lie_kind kind);

/* What the files of wrapped functions share. */

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
