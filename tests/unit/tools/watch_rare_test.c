/* SPDX-License-Identifier: BSD-2-Clause */
/* A watch whose calls of the system fail: whoever opens it is informed, and a client is lost at most. */
#include "support/child.h"
#include "unit/sys_fixture.h"
#include "watch/watch_ask.h"
#include "watch/watch_in.h"
#include <ddpsess/ddpsess.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define SOMEBODY 64990 /* a user that nobody is */

static char dir[64], path[96];
static struct ddps_ctx *ctx;

static void make_watch_rare_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/ddps-watch-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)getpid());
	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
}

static void remove_watch_rare_dir(void)
{
	ddps_ctx_free(ctx);
	rmdir(dir);
}

TestSuite(watch_rare, .init = make_watch_rare_dir, .fini = remove_watch_rare_dir, .timeout = 60);

static int dial_watch_rare(const char *at)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sa.sun_path, sizeof sa.sun_path, "%.100s", at);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof sa))
		return fd;
	close(fd);
	return -1;
}

/* Whether there is an answer, and all of it; @fd is closed. */
static bool is_answer_whole(int fd)
{
	char text[65536];
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof text - 1 - len, 0)) > 0)
		len += (size_t)n;
	close(fd);
	text[len] = 0;
	return strstr(text, "{\"pid\":") == text && len > 2 && !strcmp(text + len - 2, "}\n");
}

static bool is_rare_watch_answering(const char *at)
{
	int fd = dial_watch_rare(at);

	return fd >= 0 && is_answer_whole(fd);
}

static struct ddps_watch *open_checked_watch_rare(void)
{
	struct ddps_watch *w;

	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	return w;
}

/* ---- opening ---- */

static void is_watcher_told(const char *call, unsigned nth, int err)
{
	struct ddps_watch *w;

	sys_fail(call, nth, 1, err);
	errno = 0;
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, dir), DDPS_E_SYSTEM, "%s", call);
	cr_expect_eq(errno, err, "%s", call);
	cr_expect_eq(sys_failed(), 1, "%s", call);
	cr_expect_null(w);
	sys_fail(NULL, 0, 0, 0);
	cr_expect_neq(access(path, F_OK), 0, "%s: nothing is left", call);
}

Test(watch_rare, who_opens_it_is_informed)
{
	struct ddps_watch *w;

	is_watcher_told("socket", 0, EMFILE);
	is_watcher_told("fchmod", 0, EIO);
	is_watcher_told("bind", 0, EROFS);
	is_watcher_told("listen", 0, EOPNOTSUPP);
	is_watcher_told("link", 0, EPERM);
	is_watcher_told("fstat", 1, EIO); /* the first is of whoever owns which descriptor */
	is_watcher_told("pthread_create", 0, EAGAIN);
	w = open_checked_watch_rare();
	cr_expect(is_rare_watch_answering(path), "the next try has what it needs");
	ddps_watch_close(w);
}

/* A directory of its own, which cannot be made. */
Test(watch_rare, without_a_place)
{
	struct ddps_watch *w;

	unsetenv("DDPSESS_WATCH");
	sys_fail("mkdir", 0, 2, EROFS);
	errno = 0;
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, NULL), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EROFS);
	cr_expect_geq(sys_failed(), 1);
}

Test(watch_rare, a_directory_of_somebody_else)
{
	struct ddps_watch *w;

	if (geteuid())
		cr_skip_test("only root gives a directory away");
	cr_assert_eq(chown(dir, SOMEBODY, SOMEBODY), 0);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, dir), DDPS_E_ACCESS);
}

#define NO_SUCH 77 /* no namespace of users can be made here */

/* Users that a namespace does not map have one number there: that of @dir may be anybody's, for either side. */
static int look_as_nobody(void)
{
	struct ddps_watch_place pl;
	enum watch_fault f;
	uid_t me, owner;

	if (unshare(CLONE_NEWUSER))
		return NO_SUCH;
	me = geteuid();
	if (ddps_watch_dir(&pl, dir) != DDPS_E_ACCESS)
		return 1;
	return watch_open_place(dir, &me, &owner, &f) >= 0 || f != WATCH_FOREIGN ? 2 : 0;
}

Test(watch_rare, a_directory_of_nobody_known)
{
	const uid_t me = geteuid();
	enum watch_fault f;
	uid_t owner;
	pid_t pid;
	int status, fd = watch_open_place(dir, &me, &owner, &f);

	cr_assert_geq(fd, 0);
	close(fd);
	pid = fork();
	if (!pid)
		leave_child_fixture(look_as_nobody());
	status = await_child_status(pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH)
		cr_skip_test("no namespace of users");
	cr_expect_eq(status, 0, "%x", (unsigned)status);
}

/* ---- names that are taken ---- */

/* What has the first name, and does not answer: how a call to it fails; whether it goes. */
static void first_name(int err, bool goes)
{
	char second[sizeof path];
	struct ddps_watch *w;

	snprintf(second, sizeof second, "%s/%d.2", dir, (int)getpid());
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	sys_fail("connect", 0, 1, err);
	w = open_checked_watch_rare();
	cr_expect_eq(sys_failed(), 1);
	sys_fail(NULL, 0, 0, 0);
	cr_expect_eq(is_rare_watch_answering(path), goes, "%s", strerror(err));
	cr_expect_eq(is_rare_watch_answering(second), !goes, "%s", strerror(err));
	ddps_watch_close(w);
	unlink(path);
}

Test(watch_rare, what_is_left_over_gives_its_name)
{
	first_name(ECONNREFUSED, true);
	first_name(ENOENT, true);
	first_name(EAGAIN, false); /* it has many clients */
	first_name(EACCES, false);
}

/* Somebody else has taken it meanwhile. */
Test(watch_rare, a_name_that_was_free_a_moment_ago)
{
	char second[sizeof path];
	struct ddps_watch *w;

	snprintf(second, sizeof second, "%s/%d.2", dir, (int)getpid());
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	sys_fail("link", 0, 2, EEXIST);
	w = open_checked_watch_rare();
	cr_expect_eq(sys_failed(), 2);
	cr_expect(is_rare_watch_answering(second));
	ddps_watch_close(w);
}

/* ---- clients ---- */

/* They are served nevertheless, by the next try. */
Test(watch_rare, a_client_that_is_not_there_any_more)
{
	static const int errors[] = { EAGAIN, ECONNABORTED, EINTR };
	struct ddps_watch *w = open_checked_watch_rare();

	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++) {
		sys_fail("accept4", 0, 1, errors[i]);
		cr_expect(is_rare_watch_answering(path), "%s", strerror(errors[i]));
		cr_expect_eq(sys_failed(), 1);
	}
	ddps_watch_close(w);
}

Test(watch_rare, a_client_of_whom_nothing_is_known)
{
	struct ddps_watch *w = open_checked_watch_rare();

	sys_fail("getsockopt", 0, 1, EIO);
	cr_expect_not(is_rare_watch_answering(path));
	cr_expect_eq(sys_failed(), 1);
	cr_expect(is_rare_watch_answering(path));
	ddps_watch_close(w);
}

Test(watch_rare, an_answer_that_is_interrupted_goes_on)
{
	struct ddps_watch *w = open_checked_watch_rare();

	sys_fail("send", 0, 3, EINTR);
	cr_expect(is_rare_watch_answering(path));
	cr_expect_eq(sys_failed(), 3);
	sys_fail("send", 0, 1, EPIPE);
	cr_expect_not(is_rare_watch_answering(path));
	ddps_watch_close(w);
}

/* Root sees what its users' programs do. */
Test(watch_rare, root_may_ask)
{
	struct ddps_watch *w;
	pid_t pid;

	if (geteuid())
		cr_skip_test("there is no root to ask");
	w = open_checked_watch_rare();
	cr_assert_eq(seteuid(SOMEBODY), 0);
	pid = fork();
	if (!pid)
		leave_child_fixture(seteuid(0) || !is_rare_watch_answering(path));
	cr_expect_eq(await_child_status(pid), 0);
	cr_assert_eq(seteuid(0), 0);
	ddps_watch_close(w);
}

/* It is not the program's signals that do this, but setuid() and what is like it. */
Test(watch_rare, a_wait_that_is_interrupted_goes_on)
{
	struct ddps_watch *w;

	sys_fail("poll", 0, 2, EINTR);
	w = open_checked_watch_rare();
	cr_expect(is_rare_watch_answering(path));
	cr_expect_eq(sys_failed(), 2);
	ddps_watch_close(w);
}

Test(watch_rare, a_wait_without_memory_goes_on)
{
	struct ddps_watch *w;

	sys_fail("poll", 0, 2, ENOMEM);
	w = open_checked_watch_rare();
	cr_expect(is_rare_watch_answering(path));
	cr_expect_eq(sys_failed(), 2);
	ddps_watch_close(w);
}

/* The thread that answers has ended: clients wait until the watch is closed, and no longer. */
Test(watch_rare, a_thread_that_cannot_wait)
{
	struct ddps_watch *w;
	int fd;

	sys_fail("poll", 0, 1, EINVAL);
	w = open_checked_watch_rare();
	fd = dial_watch_rare(path);
	cr_assert_geq(fd, 0);
	ddps_watch_close(w);
	cr_expect_not(is_answer_whole(fd));
	cr_expect_eq(sys_failed(), 1);
}

/* ---- a child of fork ---- */

static int no_text(void *user, uint32_t i, char *buf, size_t len)
{
	(void)user;
	(void)i;
	(void)buf;
	(void)len;
	return 0;
}

Test(watch_rare, a_child_of_fork_adds_nothing)
{
	struct ddps_watch *w = open_checked_watch_rare();
	pid_t pid = fork_at_rest();
	int err;

	if (!pid) {
		err = ddps_watch_add(w, "mine", no_text, NULL);
		ddps_watch_close(w);
		leave_child_fixture(err != DDPS_E_FORKED);
	}
	cr_expect_eq(await_child_status(pid), 0);
	cr_expect_eq(ddps_watch_add(w, "mine", no_text, NULL), 0);
	cr_expect(is_rare_watch_answering(path), "the child has not taken the name away");
	ddps_watch_close(w);
}
