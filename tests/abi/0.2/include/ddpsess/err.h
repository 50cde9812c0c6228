/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_ERR_H
#define DDPSESS_ERR_H
/*
 * Errors.  Every function of this library that can fail returns 0 (or a count) on success
 * and one of the negative DDPS_E_* values below on failure.  What happened on a session,
 * as opposed to in a call, is told by struct ddps_error in the event that ends it.
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DDPS_API
#define DDPS_API __attribute__((visibility("default")))
#endif

/* X(name, value, text): one list yields the enum, the texts and the manual. */
#define DDPS_ERRORS(X)                                                                             \
	/* the caller's */                                                                         \
	X(INVAL, -1, "invalid argument")                                                           \
	X(STATE, -2, "not possible in this state")                                                 \
	X(TOO_LONG, -3, "longer than the protocol allows")                                         \
	X(ADDRESS, -4, "address or URI not usable")                                                \
	X(ACCESS, -5, "memory key, bounds or access rights")                                       \
	X(UNSUPPORTED, -6, "not supported")                                                        \
	X(FORKED, -7, "context belongs to the parent process")                                     \
	/* resources and the system */                                                             \
	X(NOMEM, -20, "out of memory")                                                             \
	X(LIMIT, -21, "a configured limit is reached")                                             \
	X(SYSTEM, -22, "system call failed")                                                       \
	X(BUSY, -23, "still in use")                                                               \
	/* later */                                                                                \
	X(AGAIN, -30, "nothing now, try again")                                                    \
	X(TIMEDOUT, -31, "deadline passed")                                                        \
	/* the session is over */                                                                  \
	X(CLOSED, -40, "closed")                                                                   \
	X(RESET, -41, "connection lost")                                                           \
	X(REFUSED, -42, "refused by the peer's transport")                                         \
	X(REJECTED, -43, "rejected by the peer's application")                                     \
	X(TERMINATED, -44, "terminated by an RDMAP Terminate")                                     \
	/* the peer's fault */                                                                     \
	X(TRUNCATED, -60, "shorter than its format needs")                                         \
	X(PROTOCOL, -61, "not legal in the protocol")                                              \
	X(KEY, -62, "setup frame with a wrong key")                                                \
	X(REVISION, -63, "protocol revision not supported")                                        \
	X(CRC, -64, "CRC mismatch")                                                                \
	X(MARKER, -65, "marker and length disagree")                                               \
	X(NO_DDP, -66, "peer did not indicate DDP")                                                \
	X(IRD, -67, "insufficient inbound read resources")                                         \
	X(RTR, -68, "no matching RTR option")

enum ddps_err {
	DDPS_OK = 0,
#define DDPS_X(name, value, text) DDPS_E_##name = (value),
	DDPS_ERRORS(DDPS_X)
#undef DDPS_X
};

/* An RDMAP Terminate's error: layer 0 RDMAP, 1 DDP, 2 LLP (RFC 5040 4.8, RFC 6580). */
struct ddps_triple {
	uint8_t layer, etype, code;
};

/* Why a session, a listener or a connection attempt ended. */
struct ddps_error {
	int code;		   /* DDPS_E_*, or 0: ended as asked */
	int sys_errno;		   /* errno where a system call failed, else 0 */
	bool has_triple;	   /* a Terminate, or an error that has a Terminate code */
	bool by_peer;		   /* the peer found it (its Terminate), else this side */
	struct ddps_triple triple; /* valid if has_triple */
	char peer[72];		   /* the peer's address, "" if not known yet */
	char text[200];		   /* one sentence: what failed and where */
	uint64_t reserved[2];	   /* 0 */
};

/**
 * ddps_strerror - the text of an error code
 * @err:	a DDPS_E_* value or 0
 *
 * Thread safe.  Never blocks.
 *
 * Return: a constant string, never NULL.
 */
DDPS_API const char *ddps_strerror(int err);

/**
 * ddps_triple_name - the RFC's name of a Terminate error (RFC 5040 4.8, RFC 6580 3)
 * @t:		layer, error type and code
 *
 * Thread safe.  Never blocks.
 *
 * Return: a constant string such as "DDP tagged: base or bounds violation", never NULL;
 * a combination that is not registered gives "unassigned error".
 */
DDPS_API const char *ddps_triple_name(const struct ddps_triple *t);

#ifdef __cplusplus
}
#endif
#endif
