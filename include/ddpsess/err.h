/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_ERR_H
#define DDPSESS_ERR_H
/*
 * Errors.  Every function of this library that can fail returns 0, or a count, on success.  On
 * failure it returns one of the negative DDPS_E_* values of <ddpsess/err_codes.h>.
 *
 * These values are about a call.  What happened to a session later is in struct ddps_error of the
 * event that ends it.
 */
#include <ddpsess/err_codes.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The error of an RDMAP Terminate.  The layer is 0 for RDMAP, 1 for DDP, 2 for the LLP below (RFC
 * 5040 4.8, RFC 6580). */
struct ddps_triple {
	uint8_t layer, etype, code;
};

/* Why a session, a listener or a connection attempt ended. */
struct ddps_error {
	int code;	 /* DDPS_E_*, or 0: it ended because it was asked to */
	int sys_errno;	 /* errno if a system call failed, else 0 */
	bool has_triple; /* it was a Terminate, or an error that has a Terminate code */
	bool by_peer; /* true: the peer found the error and sent a Terminate, or aborted; false: not it,
			 or the kernel's SCTP does not say whose ABORT it was */
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
 * Return: a constant string such as "DDP tagged: base or bounds violation", never NULL; a
 * combination that is not registered gives "unassigned error".
 */
DDPS_API const char *ddps_triple_name(const struct ddps_triple *t);

#ifdef __cplusplus
}
#endif
#endif
