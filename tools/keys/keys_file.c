/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of keys: made whole, for their owner only, over nothing that is there. */
#include "keys/keys.h"
#include "cli/text.h"
#include "common/system/user.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_PART 200 /* of a file's name, before its ending */

void keys_file_name(char dst[NAME_MAX + 1], const char *name, const char *ending)
{
	snprintf(dst, NAME_MAX + 1, "%.*s%s", NAME_PART, name, ending);
	for (char *p = dst; *p; p++)
		if (*p == '/' || *p == ':' || *p == '*' || *p <= ' ' || *p > '~' ||
		    (*p == '.' && p == dst) || (*p == '-' && p == dst))
			*p = '_';
}

static void report_file(struct out *o, const char *dir, const char *name, const char *what)
{
	const int err = errno;

	out_error(o, 0,
		  err == EEXIST ? "another --dir, or removing it if nobody uses it any more"
				: text_file_advice(err),
		  "'%s/%s' %s: %s", dir, name, what, strerror(err));
}

/* The umask is that of this process alone, which has one thread. */
static bool open_key_file(struct out *o, const char *dir, int dirfd, struct keys_file *f)
{
	const size_t len = strlen(f->text);
	const mode_t mask = umask(f->secret ? 077 : 022);
	bool ok;

	umask(mask | (f->secret ? 077 : 022));
	ok = !temp_open(&f->temp, dirfd, f->name, len, false, false);
	umask(mask);
	if (ok && !temp_write(&f->temp, f->text, (uint32_t)len, 0))
		return true;
	report_file(o, dir, f->name, ok ? "cannot be written" : "cannot be made");
	return false;
}

static void drop_key_files(int dirfd, struct keys_file *file, unsigned n)
{
	const int err = errno;

	for (unsigned i = 0; i < n; i++) {
		if (file[i].made)
			unlinkat(dirfd, file[i].name, 0);
		temp_abort(&file[i].temp);
	}
	errno = err;
}

bool keys_write(struct out *o, const char *dir, struct keys_file *file, unsigned n)
{
	const int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = dirfd >= 0;

	if (!ok)
		out_error(o, 0, "mkdir -m 700, and that folder", "'%s' cannot be opened: %s", dir,
			  strerror(errno));
	for (unsigned i = 0; i < n; i++)
		file[i].temp = (struct temp)TEMP_NONE;
	for (unsigned i = 0; ok && i < n; i++)
		ok = open_key_file(o, dir, dirfd, &file[i]);
	for (unsigned i = 0; ok && i < n; i++) {
		file[i].made = !temp_commit(&file[i].temp, false, NULL);
		ok = file[i].made;
		if (!ok)
			report_file(o, dir, file[i].name, "cannot be made");
	}
	if (!ok && dirfd >= 0)
		drop_key_files(dirfd, file, n);
	if (dirfd >= 0)
		close(dirfd);
	return ok;
}

/* NULL, or what is wrong. */
static const char *judge_file(int fd, bool secret)
{
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "is not a file";
	if (st.st_size >= KEYS_PEM)
		return "is too large for one certificate or key";
	if (secret && (st.st_mode & 077))
		return "can be read or written by others: chmod 600";
	if (secret && st.st_uid && !ddps_user_is_own(st.st_uid))
		return "belongs to another user";
	return NULL;
}

long keys_read(struct out *o, const char *path, bool secret, char *buf)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *wrong = fd < 0 ? strerror(errno) : judge_file(fd, secret);
	ssize_t n = wrong ? -1 : read(fd, buf, KEYS_PEM - 1);

	if (!wrong && n <= 0)
		wrong = n ? strerror(errno) : "is empty";
	if (fd >= 0)
		close(fd);
	if (wrong) {
		out_error(o, 0, "sessctl keys ca makes a CA; --ca and --ca-key name another one",
			  "'%s': %s", path, wrong);
		return -1;
	}
	buf[n] = 0;
	return n;
}
