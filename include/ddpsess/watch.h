/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_WATCH_H
#define DDPSESS_WATCH_H
/*
 * Let the owner of a process see its sessions from outside, with sessctl stat and sessctl top.
 *
 * The library opens a Unix socket that only the process's user and root may use.  Each connection
 * gets one JSON object: sessctl-stat(1) describes its fields.  What a client sends is not read.
 *
 * The socket is DIR/PID.N, for example /run/user/1000/ddpsess/4711.1.  N is the first number from 1
 * on that is free; a process can have 1000 such sockets.  DIR is /run/user/UID/ddpsess, or
 * /tmp/ddpsess-UID if the former cannot be used; the library makes it with mode 0700.
 *
 * The environment variable DDPSESS_WATCH names another directory, which must exist, or is "off".  A
 * set-user-ID program ignores it.
 */
#include <ddpsess/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddps_watch;

/**
 * ddps_watch_open - publish the state of a context
 * @out:	receives the watch; NULL on failure, and if watching is switched off
 * @ctx:	context
 * @label:	what the program calls the context, such as "my server"; NULL or "": nothing.  At
 *		most 63 octets are kept
 * @where:	a directory, as an absolute path, or "off".  NULL: what DDPSESS_WATCH says, or the
 *		default above if it is not set.  "", here or there: the default above
 *
 * Starts a thread that answers, with all signals blocked.  The thread never has the context's lock
 * for long: it takes the context's lock for 32 sessions at most, then leaves it to others.  A
 * client that reads slowly is dropped after 2 s.  Sockets in the directory whose process has ended
 * are removed.  If something fails later, for example because the directory is removed, sessions
 * are not affected.
 *
 * A child of fork is not watched until it opens a watch of its own on a context of its own.
 *
 * The program owns the watch and frees it with ddps_watch_close.  Thread safe.  Blocks only as a
 * file system does.
 *
 * Return: 0, also if watching is switched off, or
 * - DDPS_E_INVAL: @out or @ctx is NULL, or the directory is no absolute path or too long for a
 *   socket's address
 * - DDPS_E_BUSY: @ctx is watched already
 * - DDPS_E_ACCESS: the directory belongs to somebody else, or others may write to it; of the
 *   default directory others may not even read
 * - DDPS_E_NOMEM
 * - DDPS_E_SYSTEM: errno is set
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_watch_open(struct ddps_watch **out, struct ddps_ctx *ctx, const char *label,
			     const char *where);

/**
 * ddps_watch_fn - write one object of the program's own
 * @user:	what ddps_watch_add was given
 * @n:		which one, from 0 on
 * @to:		where to write it: a JSON object as text, terminated by 0
 * @size:	octets of room, 1024
 *
 * The watch's thread calls it, without any lock of the library.  It must not call a function of
 * this header.  It should return within a second, because nobody else is answered meanwhile.
 *
 * Return: the length of the text, below @size; 0 if there is no such object, which ends the list; a
 * negative number if a lock is not available: the process is shown as stuck.
 */
typedef int ddps_watch_fn(void *user, uint32_t n, char *to, size_t size);

/**
 * ddps_watch_add - show something of the program's own as well
 * @watch:	from ddps_watch_open; NULL: watching is switched off, and nothing is done
 * @name:	the name of the array that answers have from now on: 1 to 31 lowercase letters,
 *		digits and '_'.  sessctl-stat(1) has the names that the library uses itself
 * @fn:		called for each object of the array
 * @user:	the first argument of @fn
 *
 * For example, the drop-in for libibverbs shows its datagram queue pairs in this way.  A watch has
 * one array.  Another call replaces it; an answer under way may still call the earlier @fn.
 * ddps_watch_close waits for a call of @fn to return.
 *
 * Thread safe.  Does not block.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: @name is not such a name, or @fn is NULL
 * - DDPS_E_FORKED
 */
DDPS_API int ddps_watch_add(struct ddps_watch *watch, const char *name, ddps_watch_fn *fn,
			    void *user);

/**
 * ddps_watch_close - remove the socket and end its thread
 * @watch:	may be NULL
 *
 * Call it before ddps_ctx_free.  Waits for an answer under way, which is given up.  That takes 1 s
 * at most, and only if somebody holds the context's lock that long; a function of ddps_watch_add is
 * waited for until it returns.  In a child of fork it only frees memory.
 */
DDPS_API void ddps_watch_close(struct ddps_watch *watch);

#ifdef __cplusplus
}
#endif
#endif
