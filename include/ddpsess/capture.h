/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_CAPTURE_H
#define DDPSESS_CAPTURE_H
/*
 * A capture file of what a context sends and receives, for Wireshark and tshark: pcapng, IP packets
 * without a link layer.  No privileges are needed, because the library writes it itself.
 *
 *	struct ddps_ctx_attr attr;
 *	struct ddps_capture *c;
 *
 *	ddps_ctx_attr_init(&attr);
 *	ddps_capture_open(&c, "session.pcapng");
 *	attr.capture = ddps_capture_add;
 *	attr.capture_user = c;
 *
 * SCTP packets are as they were on the wire (RFC 9260).  The IP header in front of them is made up.
 * For TCP both the IP header and the TCP header are made up, and there is no handshake.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_capture;

/**
 * ddps_capture_open - begin a capture file
 * @out:	receives the capture; unchanged on failure
 * @path:	the file; it is made if needed, with mode 0600, and its earlier content is lost.  A link
 *		is not followed, except /dev/stdout, /dev/stderr and those in /dev/fd and /proc/self/fd
 *
 * It has what sessions carry in clear, also where the wire is secured.
 *
 * The file is locked (flock) as long as it is open, so that two processes do not write into one.
 * If not even the header can be written, for example because the disk is full, a file that this
 * call has made is removed again.
 *
 * The program owns the capture and frees it with ddps_capture_close.  Thread safe.  Blocks as a
 * file system does.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a NULL argument
 * - DDPS_E_NOMEM
 * - DDPS_E_BUSY: another process, or another capture of this one, writes the file
 * - DDPS_E_SYSTEM: errno is set
 */
DDPS_API int ddps_capture_open(struct ddps_capture **out, const char *path);

/**
 * ddps_capture_add - write one packet; a ddps_capture_fn
 * @capture:	a struct ddps_capture
 * @p:		what the library hands out
 *
 * Each context needs a capture file of its own: calls for one context come one after the other,
 * those for two contexts do not.
 *
 * What is written is in the file when this returns.  Blocks as a file system does.  After the first
 * failure nothing more is written: the file ends with the last whole packet, and ddps_capture_error
 * reports the failure.  The limit of a file's size (ulimit -f) is a failure, too: SIGXFSZ does not
 * come.
 *
 * Of more than 1024 TCP connections the sequence numbers of the one seen least recently start
 * again.
 */
DDPS_API void ddps_capture_add(void *capture, const struct ddps_packet *p);

/**
 * ddps_capture_error - why packets are missing from the file
 * @capture:	may be NULL
 *
 * Thread safe, also while packets are written.  Does not block.
 *
 * Return: 0 as long as everything could be written, else the errno of the first failure.
 */
DDPS_API int ddps_capture_error(const struct ddps_capture *capture);

/**
 * ddps_capture_close - close the file and free the capture
 * @capture:	may be NULL
 *
 * Call it after ddps_ctx_free of the context.  Blocks as a file system does.
 *
 * Return: 0, or DDPS_E_SYSTEM: not all could be written; errno says why.
 */
DDPS_API int ddps_capture_close(struct ddps_capture *capture);

#ifdef __cplusplus
}
#endif
#endif
