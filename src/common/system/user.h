/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_USER_H
#define DDPS_USER_H
/* Whether somebody else is this process's user. */
#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether @uid, as the system says it of a peer or of a file, is this process's effective user.  In a user
 * namespace all users that it does not map have one number, the overflow uid: who has that himself
 * cannot tell them from his own, so there nobody is.
 */
bool ddps_user_is_own(uid_t uid);
/* Whether @uid may be any of the users that this user namespace does not map. */
bool ddps_user_is_nobody(uid_t uid);

#endif
