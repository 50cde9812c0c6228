/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_MPA_SHM_H
#define DDPS_MPA_SHM_H
/*
 * MPA between two processes of a host: a struct ddps_mpa_tcp over memory that both share.  A unix socket is there for
 * the set-up, for the peer's credentials and for its end: the system closes it when the process is gone.
 *
 * The socket is the bell, too: one octet wakes a side that has said that it sleeps.  An eventfd would be cheaper by
 * little, and would be one open file for both sides: a peer that clears its O_NONBLOCK and fills it stops whoever
 * writes to it, for ever.  MSG_DONTWAIT is the caller's own.
 */
#include "mpa_tcp/mpa_conn.h"

#define DDPS_SHM_TEXT 112 /* of a socket's file or abstract name */

/* Which one it is; inode 0: an abstract name has none. */
struct ddps_shm_file {
	dev_t dev;
	ino_t inode;
};

/* As of struct ddps_llp_provider. */
int ddps_mpa_shm_connect(struct ddps_env *env, const struct ddps_uri *uri,
			 const struct sockaddr *sa, socklen_t sa_len,
			 const struct ddps_setup *setup, const struct ddps_llp_param *p,
			 const struct ddps_llp_up *up, void *user, struct ddps_llp **out);

/* A connection around @fd, which was accepted at @name, and which it takes over on success.  @own_user: the peer has
 * to be of this process's user.  NULL: errno says why, EACCES: it is not, which was said. */
struct ddps_mpa_conn *ddps_mpa_shm_new(struct ddps_env *env, int fd, const char *name,
				       bool own_user);

/* Close what was accepted, or the listener's socket, as ddps_shm_close(). */
void ddps_mpa_shm_let_go(struct ddps_env *env, int fd);

/* The peer's user. */
uint32_t ddps_mpa_shm_uid(const struct ddps_mpa_conn *c);

/* A listening socket at @sa, or -1 with errno.  A file that is left of a listener which is gone makes way. */
int ddps_mpa_shm_bind(const struct sockaddr *sa, socklen_t sa_len, unsigned backlog,
		      struct ddps_shm_file *file);
/* The listener at @path goes: remove its file, if it is still there. */
void ddps_mpa_shm_unbind(const char *path, const struct ddps_shm_file *file);

#endif
