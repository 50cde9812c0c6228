/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_ERR_CODES_H
#define DDPSESS_ERR_CODES_H
/*
 * The values of errors, which all libraries of the project share.  Each library has a function of
 * its own for their texts: ddps_strerror() in libddpsess, ddps_ipoib_strerror() in
 * libddpsess-ipoib.
 */

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

#endif
