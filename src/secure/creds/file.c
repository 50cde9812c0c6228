/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the files of credentials. */
#include "secure/creds/file.h"
#include <ddpsess/err_codes.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPENINGS 8 /* of a file that is replaced while it is looked at */

static struct ddps_stamp take_stamp(const struct stat *st)
{
	return (struct ddps_stamp){ .dev = st->st_dev,
				    .ino = st->st_ino,
				    .size = st->st_size,
				    .changed = st->st_ctim,
				    .modified = st->st_mtim };
}

struct ddps_stamp ddps_stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return (struct ddps_stamp){ .err = errno };
	return take_stamp(&st);
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool ddps_stamp_same(const struct ddps_stamp *a, const struct ddps_stamp *b)
{
	return a->err == b->err && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       is_same_time(&a->changed, &b->changed) && is_same_time(&a->modified, &b->modified);
}

static void find_folder(char dst[PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(dst, PATH_MAX, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
}

/* Whether it may decide who is trusted. */
static int check_writers(int fd, const char *path, const struct stat *st, char *why, size_t why_len)
{
	if (ddps_file_is_anothers(st))
		snprintf(why, why_len,
			 "belongs to user %lu, who could say in it whom this side trusts: chown it "
			 "to this user or to root",
			 (unsigned long)st->st_uid);
	else if (ddps_file_can_others_write(fd, st))
		snprintf(why, why_len,
			 "has mode %04o, so that others could say in it whom this side trusts: "
			 "chmod go-w",
			 (unsigned)st->st_mode & 07777);
	else
		return ddps_file_way(path, st, why, why_len);
	return DDPS_E_CONFIG;
}

/* Whether a secret may be read from it. */
static int check_owner(const struct stat *st, char *why, size_t why_len)
{
	if (st->st_mode & 077) {
		snprintf(why, why_len,
			 "has mode %04o, so that others can read or write it: chmod 600",
			 (unsigned)st->st_mode & 07777);
		return DDPS_E_KEY_OPEN;
	}
	if (ddps_file_is_anothers(st)) {
		snprintf(why, why_len,
			 "belongs to user %lu, who can read it: it has to be this user's or root's",
			 (unsigned long)st->st_uid);
		return DDPS_E_KEY_OPEN;
	}
	return 0;
}

static int check_kind(const struct stat *st, size_t max, char *why, size_t why_len)
{
	if (!S_ISREG(st->st_mode)) {
		snprintf(why, why_len, "is %s, not a file",
			 S_ISDIR(st->st_mode)	 ? "a folder"
			 : S_ISFIFO(st->st_mode) ? "a pipe"
						 : "a device or socket");
		return DDPS_E_CONFIG;
	}
	if ((uintmax_t)st->st_size > max) {
		snprintf(why, why_len, "has %ju octets, more than the %zu that are taken",
			 (uintmax_t)st->st_size, max);
		return DDPS_E_CONFIG;
	}
	return 0;
}

static int read_whole(struct ddps_vault *v, int fd, size_t size, char *why, size_t why_len)
{
	size_t got = 0;
	ssize_t n = 0;
	const uint8_t *nul;

	if (ddps_vault_new(v, size + 1)) {
		snprintf(why, why_len, "needs memory that is not there");
		return DDPS_E_NOMEM;
	}
	while (got < size) {
		n = read(fd, v->p + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (n < 0) {
		snprintf(why, why_len, "cannot be read: %s", strerror(errno));
		ddps_vault_free(v);
		return DDPS_E_CONFIG;
	}
	v->p[got] = 0;
	v->size = got;
	nul = memchr(v->p, 0, got);
	if (!nul)
		return 0;
	/* what follows would not be read, and a rule that denies may be there */
	snprintf(why, why_len, "has an octet 0 at %zu, so it is no text: was it written whole?",
		 (size_t)(nul - v->p));
	ddps_vault_free(v);
	return DDPS_E_CONFIG;
}

/* What stands in place of a secret and is none: its mode is not what is wrong. */
static bool is_certificate(int fd, size_t size)
{
	char why[160];
	struct ddps_vault v;
	bool is;

	if (read_whole(&v, fd, size, why, sizeof why))
		return false;
	is = strstr((char *)v.p, "BEGIN CERTIFICATE-----") &&
	     !strstr((char *)v.p, "PRIVATE KEY-----");
	ddps_vault_free(&v);
	return is;
}

/* @replaced: there is another one at @path by now. */
static int read_stamped(struct ddps_vault *v, const char *path, size_t max,
			enum ddps_file_kind kind, struct ddps_stamp *stamp, char *why,
			size_t why_len, bool *replaced)
{
	/* a pipe without a writer opens nonetheless */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err;
	struct stat st;

	*v = (struct ddps_vault){ .p = NULL };
	if (fd < 0 || fstat(fd, &st)) {
		*stamp = (struct ddps_stamp){ .err = errno };
		snprintf(why, why_len, "cannot be opened: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return DDPS_E_CONFIG;
	}
	*stamp = take_stamp(&st);
	err = check_kind(&st, max, why, why_len);
	if (!err && kind == DDPS_FILE_SECRET)
		err = check_owner(&st, why, why_len);
	if (err == DDPS_E_KEY_OPEN && is_certificate(fd, (size_t)st.st_size)) {
		snprintf(why, why_len,
			 "is a certificate, and a private key or pre-shared keys have to be here");
		err = DDPS_E_CONFIG;
	}
	if (!err && kind == DDPS_FILE_RULES)
		err = check_writers(fd, path, &st, why, why_len);
	if (!err)
		err = read_whole(v, fd, (size_t)st.st_size, why, why_len);
	*replaced = err && !ddps_file_is_at(fd, path);
	close(fd);
	return err;
}

int ddps_file_read(struct ddps_vault *v, const char *path, size_t max, enum ddps_file_kind kind,
		   struct ddps_stamp *stamp, char *why, size_t why_len)
{
	bool replaced = true;
	int err = 0;

	for (unsigned i = 0; replaced && i < OPENINGS; i++) {
		replaced = false;
		err = read_stamped(v, path, max, kind, stamp, why, why_len, &replaced);
	}
	return err;
}

bool ddps_file_is_open(const char *path, const char **how)
{
	char folder[PATH_MAX];
	struct stat st;

	*how = "can be written by everybody: chmod o-w";
	if (!stat(path, &st) && st.st_mode & S_IWOTH)
		return true;
	*how = "is in a folder that everybody can write: chmod o-w, or another folder";
	find_folder(folder, path);
	return !stat(folder, &st) && st.st_mode & S_IWOTH && !(st.st_mode & S_ISVTX);
}

bool ddps_file_is_at(int fd, const char *path)
{
	struct stat opened, now;

	return !fstat(fd, &opened) && !stat(path, &now) && opened.st_dev == now.st_dev &&
	       opened.st_ino == now.st_ino;
}

int ddps_file_append(int *fd, const char *path, bool look, char *why, size_t why_len)
{
	const int f = open(path,
			   O_WRONLY | O_APPEND | (look ? 0 : O_CREAT) | O_CLOEXEC | O_NOCTTY |
				   O_NONBLOCK | O_NOFOLLOW,
			   S_IRUSR | S_IWUSR);
	char folder[PATH_MAX];
	struct stat st;
	int err = 0;

	if (f < 0 && look && errno == ENOENT) {
		find_folder(folder, path);
		if (!faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
			return 0;
		snprintf(why, why_len, "cannot be made: its folder %s",
			 errno == ENOENT ? "is not there" : "cannot be written");
		return DDPS_E_CONFIG;
	}
	if (f < 0 || fstat(f, &st)) {
		snprintf(why, why_len, "cannot be opened: %s", strerror(errno));
		err = DDPS_E_CONFIG;
	} else if (!S_ISREG(st.st_mode)) {
		snprintf(why, why_len, "is not a file");
		err = DDPS_E_CONFIG;
	} else {
		err = check_owner(&st, why, why_len);
	}
	if (!err)
		*fd = f;
	else if (f >= 0)
		close(f);
	return err;
}

char *ddps_file_line(char **at, unsigned *number)
{
	while (*at && **at) {
		char *line = *at, *end = strchr(line, '\n');

		*at = end ? end + 1 : NULL;
		++*number;
		if (!end)
			end = line + strlen(line);
		while (end > line && strchr(" \t\r\n", end[-1]))
			end--;
		*end = 0;
		line += strspn(line, " \t");
		if (*line && *line != '#')
			return line;
	}
	return NULL;
}
