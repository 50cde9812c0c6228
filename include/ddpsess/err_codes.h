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
	X(RTR, -68, "no matching RTR option")                                                      \
	/* secured wires: files, and who the peer is */                                            \
	X(NO_TLS, -80, "the library of secured wires cannot be loaded")                            \
	X(CONFIG, -81, "settings or files of secured wires not usable")                            \
	X(KEY_OPEN, -82, "key file that others can read or write")                                 \
	X(KEY_MISMATCH, -83, "private key and certificate do not belong together")                 \
	X(CERT, -84, "certificate not valid")                                                      \
	X(NO_CERT, -85, "no certificate")                                                          \
	X(CERT_EXPIRED, -86, "certificate expired")                                                \
	X(CERT_NOT_YET, -87, "certificate not yet valid")                                          \
	X(CERT_CA, -88, "certificate of a CA that is not trusted")                                 \
	X(CERT_NAME, -89, "certificate for another name")                                          \
	X(CERT_USAGE, -90, "certificate for another use")                                          \
	X(CERT_REVOKED, -91, "certificate revoked")                                                \
	X(CERT_WEAK, -92, "certificate with a weak key or signature")                              \
	X(CRL, -93, "list of revoked certificates missing or out of date")                         \
	X(NOT_LISTED, -94, "peer is not on the list")                                              \
	X(PSK_UNKNOWN, -95, "unknown identity of a pre-shared key")                                \
	X(PSK_WRONG, -96, "wrong pre-shared key")                                                  \
	X(CERT_REFUSED, -97, "the peer refused this side's certificate or pre-shared key")         \
	/* secured wires: the handshake */                                                         \
	X(TLS, -100, "TLS handshake failed")                                                       \
	X(PLAIN_PEER, -101, "peer speaks without TLS, or another protocol")                        \
	X(TLS_OLD, -102, "peer has no TLS 1.3")                                                    \
	X(TLS_SUITE, -103, "no cipher, group or kind of credentials in common")                    \
	X(TLS_ALPN, -104, "peer wants another protocol inside TLS")                                \
	/* secured wires: what came */                                                             \
	X(CUT_SHORT, -110, "connection closed without close_notify")                               \
	X(FORGED, -111, "record did not authenticate")                                             \
	X(ALERT, -112, "ended by an alert of the peer")

enum ddps_err {
	DDPS_OK = 0,
#define DDPS_X(name, value, text) DDPS_E_##name = (value),
	DDPS_ERRORS(DDPS_X)
#undef DDPS_X
};

#endif
