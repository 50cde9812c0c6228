/* SPDX-License-Identifier: BSD-2-Clause */
/* The way to a file: each folder and link on it says what is found there, and so does whoever may change one. */
#include "common/system/user.h"
#include "secure/creds/file.h"
#include <ddpsess/err_codes.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LINKS_MAX 40	 /* as the kernel follows */
#define PROC_FS	  0x9fa0 /* f_type: <linux/magic.h> */

struct way {
	struct stat top;  /* "/": whose it is decides anyway */
	int at;		  /* the folder that was reached, by O_PATH */
	char *all, *rest; /* names from there on; @rest is in @all */
	unsigned links;
	const struct stat *file; /* that was opened */
	bool reached;		 /* it was met */
	char *why;
	size_t why_len;
};

/* Entries of a list that name others: it has more than the three of any mode.  Their rights are in those of the group.
 * Where nobody can say there may be some. */
static bool has_named_entries(int fd)
{
	enum { HEADER = 4, ENTRY = 8 };
	static const char list[] = "system.posix_acl_access";
	char name[32];
	ssize_t n = fgetxattr(fd, list, NULL, 0);

	if (n < 0 && errno == EBADF) { /* by O_PATH */
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		n = getxattr(name, list, NULL, 0);
	}
	return n < 0 ? errno != ENODATA && errno != ENOTSUP : n > HEADER + 3 * ENTRY;
}

bool ddps_file_is_anothers(const struct stat *st)
{
	return st->st_uid && !ddps_user_is_own(st->st_uid);
}

/* The number of a user's own group, which nobody else is in, is that of the user. */
bool ddps_file_can_others_write(int fd, const struct stat *st)
{
	return st->st_mode & S_IWOTH ||
	       (st->st_mode & S_IWGRP &&
		(st->st_gid != st->st_uid || ddps_user_is_nobody(st->st_uid) ||
		 has_named_entries(fd)));
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int cannot_look(const struct way *w, int e)
{
	snprintf(w->why, w->why_len, "cannot be looked at: %s", strerror(e));
	return DDPS_E_CONFIG;
}

/* In a user namespace "/" may be nobody's; what else is nobody's there need not be of the same user. */
static bool is_strangers(const struct way *w, const struct stat *st)
{
	return ddps_file_is_anothers(st) &&
	       (ddps_user_is_nobody(st->st_uid) ? !is_same_inode(st, &w->top)
						: st->st_uid != w->top.st_uid);
}

/* Of a folder, or a link.  In a sticky folder others replace only what is their own. */
static int check_hands(const struct way *w, int fd, const struct stat *st)
{
	const bool strange = is_strangers(w, st), folder = S_ISDIR(st->st_mode);
	char self[32], name[64] = "?";
	ssize_t n;

	if (!strange && (!folder || st->st_mode & S_ISVTX || !ddps_file_can_others_write(fd, st)))
		return 0;
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	n = readlink(self, name, sizeof name - 1);
	name[n > 0 ? n : 1] = 0;
	if (strange)
		snprintf(w->why, w->why_len,
			 "is reached by %s, a %s of user %lu, who could put another file there: "
			 "move it",
			 name, folder ? "folder" : "link", (unsigned long)st->st_uid);
	else
		snprintf(w->why, w->why_len,
			 "is below %s of mode %04o, where others could put another file: chmod "
			 "go-w",
			 name, (unsigned)st->st_mode & 07777);
	return DDPS_E_CONFIG;
}

/* @fd is taken over. */
static int enter_folder(struct way *w, int fd)
{
	struct stat st;

	if (w->at >= 0)
		close(w->at);
	w->at = fd;
	return fd < 0 || fstat(fd, &st) ? cannot_look(w, errno) : check_hands(w, fd, &st);
}

static int enter_first(struct way *w, const char *name)
{
	return enter_folder(w, open(name, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Go on with @name, and what is left behind it. */
static int go_by(struct way *w, const char *name, const char *rest)
{
	char *all;

	if (asprintf(&all, "%s/%s", name, rest) < 0) {
		snprintf(w->why, w->why_len, "needs memory that is not there");
		return DDPS_E_NOMEM;
	}
	free(w->all);
	w->all = w->rest = all;
	return *all == '/' ? enter_first(w, "/") : 0;
}

/* A link of /proc/self/fd is the open file: its text is the name that the file has, or had. */
static bool is_link_of_file(const struct way *w, int link, const char *name)
{
	struct statfs fs;
	struct stat st;

	return !*w->rest && !fstatfs(link, &fs) && fs.f_type == PROC_FS &&
	       !fstatat(w->at, name, &st, 0) && is_same_inode(&st, w->file);
}

static int follow_link(struct way *w, int link, const struct stat *st)
{
	char to[PATH_MAX];
	const ssize_t n = readlinkat(link, "", to, sizeof to - 1);
	int err = check_hands(w, link, st);

	if (err)
		return err;
	if (n < 0 || w->links++ == LINKS_MAX)
		return cannot_look(w, n < 0 ? errno : ELOOP);
	to[n] = 0;
	return go_by(w, to, w->rest);
}

static int take_way_name(struct way *w, const char *name)
{
	const int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st)) /* a file that a link of /proc has named may have no name */
		err = w->reached && (errno == ENOENT || errno == EACCES) ? 0
									 : cannot_look(w, errno);
	else if (S_ISDIR(st.st_mode))
		return enter_folder(w, fd);
	else if (S_ISLNK(st.st_mode)) {
		w->reached |= is_link_of_file(w, fd, name);
		err = follow_link(w, fd, &st);
		close(fd);
		return err;
	} else {
		w->reached |= !*w->rest && is_same_inode(&st, w->file);
	}
	if (fd >= 0)
		close(fd);
	w->rest += strlen(w->rest);
	return err;
}

static char *cut_name(struct way *w)
{
	char *name = w->rest + strspn(w->rest, "/");

	w->rest = name + strcspn(name, "/");
	if (*w->rest)
		*w->rest++ = 0;
	return *name ? name : NULL;
}

int ddps_file_way(const char *path, const struct stat *file, char *why, size_t why_len)
{
	struct way w = { .at = -1, .file = file, .why = why, .why_len = why_len };
	char *const here = *path == '/' ? NULL : getcwd(NULL, 0), *name;
	int err;

	if (stat("/", &w.top))
		err = cannot_look(&w, errno);
	else
		err = go_by(&w, here ? here : *path == '/' ? "" : ".", path);
	if (!err && w.at < 0) /* nobody knows how this folder is reached */
		err = enter_first(&w, ".");
	while (!err && (name = cut_name(&w)))
		err = take_way_name(&w, name);
	if (!err && !w.reached) {
		snprintf(why, why_len, "is another file than the one that was opened: try again");
		err = DDPS_E_CONFIG;
	}
	if (w.at >= 0)
		close(w.at);
	free(w.all);
	free(here);
	return err;
}
