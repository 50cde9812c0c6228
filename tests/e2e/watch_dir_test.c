/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a watch puts its socket: names that are taken, directories that are not as they should be. */
#include "support/descriptor.h"
#include "support/e2e.h"
#include "support/child.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONTEXTS 1000  /* of one process */
#define SOMEBODY 64990 /* a user that nobody is, and those behind */

static char dir[64], path[96];

static void make_watch_dir_e2e_dir(void)
{
	snprintf(dir, sizeof dir, "/tmp/ddps-watch-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)getpid());
}

static void remove_watch_dir_e2e_dir(void)
{
	rmdir(dir);
}

TestSuite(watch_dir, .init = make_watch_dir_e2e_dir, .fini = remove_watch_dir_e2e_dir,
	  .timeout = 60);

static struct ddps_ctx *new_watch_dir_e2e_ctx(void)
{
	struct ddps_ctx *ctx;

	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	return ctx;
}

static int new_watch_dir_e2e_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* Whether there is an answer, which is JSON. */
static bool is_watch_answering(const char *at)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = new_watch_dir_e2e_socket();
	FILE *f = fdopen(fd, "r");
	json_t *o = NULL;

	snprintf(sa.sun_path, sizeof sa.sun_path, "%.100s", at);
	if (!connect(fd, (struct sockaddr *)&sa, sizeof sa))
		o = json_loadf(f, 0, NULL);
	fclose(f);
	json_decref(o);
	return o != NULL;
}

static bool is_socket(const char *at)
{
	struct stat st;

	return !lstat(at, &st) && S_ISSOCK(st.st_mode);
}

/* What is in the way is left over, and goes: a file, a link to nowhere. */
Test(watch_dir, a_name_that_is_left_over_is_used_again)
{
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;

	close(creat(path, 0600));
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	cr_expect(is_socket(path));
	cr_expect(is_watch_answering(path));
	ddps_watch_close(w);
	cr_assert_eq(symlink("/nowhere/at/all", path), 0);
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	cr_expect(is_socket(path));
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
}

static void numbered(char *to, size_t size, int i)
{
	snprintf(to, size, "%s/%d.%d", dir, (int)getpid(), i);
}

/* By what cannot be removed. */
Test(watch_dir, names_that_are_taken)
{
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;
	char name[96];

	for (int i = 1; i < CONTEXTS; i++) {
		numbered(name, sizeof name, i);
		cr_assert_eq(mkdir(name, 0700), 0);
	}
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	numbered(name, sizeof name, CONTEXTS);
	cr_expect(is_watch_answering(name), "the last one");
	ddps_watch_close(w);
	cr_assert_eq(mkdir(name, 0700), 0);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, dir), DDPS_E_SYSTEM);
	cr_expect_null(w);
	cr_assert_eq(rmdir(name), 0);
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0, "it counts as not watched");
	ddps_watch_close(w);
	for (int i = 1; i < CONTEXTS; i++) {
		numbered(name, sizeof name, i);
		cr_assert_eq(rmdir(name), 0, "it is still there");
	}
	ddps_ctx_free(ctx);
}

static void limit_watch_dir_e2e_fds(rlim_t n)
{
	struct rlimit lim;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = n;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

/* None for the socket; then none to see whether a name is left over, and so it is taken for in use. */
Test(watch_dir, no_descriptor_is_free)
{
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;
	const int free_fd = find_next_fd();
	struct rlimit was;
	char second[96];

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	limit_watch_dir_e2e_fds((rlim_t)free_fd);
	cr_expect_eq(ddps_watch_open(&w, ctx, NULL, dir), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EMFILE);
	cr_expect_null(w);
	limit_watch_dir_e2e_fds((rlim_t)free_fd + 1);
	close(creat(path, 0600));
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	limit_watch_dir_e2e_fds(was.rlim_cur);
	cr_expect_not(is_socket(path), "nobody knows whether somebody uses it");
	numbered(second, sizeof second, 2);
	cr_expect(is_watch_answering(second));
	ddps_watch_close(w);
	unlink(path);
	ddps_ctx_free(ctx);
}

/* ---- what a sweep finds ---- */

static int listen_watch_dir_e2e_at(const char *at)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = new_watch_dir_e2e_socket();

	snprintf(sa.sun_path, sizeof sa.sun_path, "%.100s", at);
	cr_assert_eq(bind(fd, (struct sockaddr *)&sa, sizeof sa), 0);
	cr_assert_eq(listen(fd, 1), 0);
	return fd;
}

/* Of process 999999999 there is none: more than the system has numbers for. */
Test(watch_dir, only_what_is_left_over_is_removed)
{
	static const char *const names[] = { "999999999",    "999999999x1",  "999999999.",
					     "999999999.1x", ".999999999.1", "x.1" };
	char name[200], long_name[200];
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;
	int fd;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(name, sizeof name, "%s/%s", dir, names[i]);
		close(creat(name, 0600));
	}
	/* Too long for a socket's address. */
	snprintf(long_name, sizeof long_name, "%s/999999999.%080d", dir, 1);
	close(creat(long_name, 0600));
	snprintf(name, sizeof name, "%s/999999999.2", dir);
	close(creat(name, 0600));
	snprintf(name, sizeof name, "%s/999999999.1", dir);
	fd = listen_watch_dir_e2e_at(name); /* as of another PID namespace */
	cr_assert_eq(ddps_watch_open(&w, ctx, NULL, dir), 0);
	cr_expect(is_watch_answering(path)); /* the thread has swept before */
	cr_expect_eq(unlink(name), 0, "somebody listens there");
	close(fd);
	cr_expect_eq(unlink(long_name), 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(name, sizeof name, "%s/%s", dir, names[i]);
		cr_expect_eq(unlink(name), 0, "%s", names[i]);
	}
	ddps_watch_close(w);
	snprintf(name, sizeof name, "%s/999999999.2", dir);
	cr_expect_eq(access(name, F_OK), -1, "this one was left over");
	ddps_ctx_free(ctx);
}

/* ---- as another user, of whom root can make one ---- */

static void as_user(unsigned uid, int (*body)(void))
{
	int status;
	pid_t child;

	if (geteuid())
		cr_skip("needs root");
	cr_assert_eq(chown(dir, uid, uid), 0);
	child = fork();
	if (!child)
		leave_child_fixture(setgid(uid) || setuid(uid) ? 99 : body());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%x", status);
}

/* Ends a child with the number of the check that failed. */
#define CHECK(n, what)                                                                             \
	do {                                                                                       \
		if (!(what))                                                                       \
			return n;                                                                  \
	} while (0)

static int change_watch_dir_e2e_rights(void)
{
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;
	char one[96];
	int fd;

	/* Not to be written to. */
	CHECK(1, !chmod(dir, 0500));
	CHECK(2, ddps_watch_open(&w, ctx, NULL, dir) == DDPS_E_SYSTEM && errno == EACCES && !w);
	/* Not to be listed; and process 1 is another user's, and lives. */
	CHECK(3, !chmod(dir, 0700));
	snprintf(one, sizeof one, "%s/1.1", dir);
	fd = creat(one, 0600);
	CHECK(4, fd >= 0 && !close(fd) && !chmod(dir, 0300));
	snprintf(path, sizeof path, "%s/%d.1", dir, (int)getpid());
	CHECK(5, !ddps_watch_open(&w, ctx, NULL, dir) && is_watch_answering(path));
	ddps_watch_close(w);
	CHECK(6, !chmod(dir, 0700) && !ddps_watch_open(&w, ctx, NULL, dir) &&
			 is_watch_answering(path));
	CHECK(7, !unlink(one));
	ddps_watch_close(w);
	ddps_ctx_free(ctx);
	return 0;
}

Test(watch_dir, rights_that_are_missing)
{
	as_user(SOMEBODY, change_watch_dir_e2e_rights);
}

static int no_threads(void)
{
	const struct rlimit one = { 1, 1 };
	struct ddps_ctx_attr attr;
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx(), *other;
	struct ddps_watch *w;

	CHECK(1, !setrlimit(RLIMIT_NPROC, &one));
	CHECK(2, ddps_watch_open(&w, ctx, NULL, dir) == DDPS_E_SYSTEM && errno == EAGAIN && !w);
	CHECK(3, !rmdir(dir)); /* nothing was left in it */
	ddps_ctx_attr_init(&attr);
	attr.thread = true;
	CHECK(4, ddps_ctx_new(&other, &attr) == DDPS_E_SYSTEM && errno == EAGAIN);
	ddps_ctx_free(ctx);
	return 0;
}

/* Where the system gives no threads any more. */
Test(watch_dir, no_thread_available)
{
	as_user(SOMEBODY + 1, no_threads);
}

/* ---- the default ---- */

static char wanted[96];
static int then; /* what it is once others may read it: the other default, or an error */

static int by_default(void)
{
	struct ddps_ctx *ctx = new_watch_dir_e2e_ctx();
	struct ddps_watch *w;
	struct stat st;
	char name[128];

	unsetenv("DDPSESS_WATCH");
	CHECK(1, !ddps_watch_open(&w, ctx, NULL, ""));
	CHECK(2, !lstat(wanted, &st) && (st.st_mode & 07777) == 0700);
	snprintf(name, sizeof name, "%s/%d.1", wanted, (int)getpid());
	CHECK(3, is_watch_answering(name));
	ddps_watch_close(w);
	CHECK(4, !chmod(wanted, 0750));
	CHECK(5, ddps_watch_open(&w, ctx, NULL, NULL) == then && access(name, F_OK));
	ddps_watch_close(w);
	CHECK(6, !rmdir(wanted));
	ddps_ctx_free(ctx);
	return 0;
}

Test(watch_dir, the_default_without_a_directory_of_the_system)
{
	snprintf(wanted, sizeof wanted, "/tmp/ddpsess-%u", SOMEBODY + 2);
	then = DDPS_E_ACCESS;
	as_user(SOMEBODY + 2, by_default);
}

/* As a login makes it; @owner: whose it is. */
static void with_a_directory_of(unsigned uid, unsigned owner)
{
	char run[64], other[64];

	if (geteuid())
		cr_skip("needs root");
	(void)!mkdir("/run/user", 0755);
	snprintf(run, sizeof run, "/run/user/%u", uid);
	snprintf(other, sizeof other, "/tmp/ddpsess-%u", uid);
	if (mkdir(run, 0700))
		cr_skip("no %s", run);
	cr_assert_eq(chown(run, owner, owner), 0);
	if (owner == uid)
		snprintf(wanted, sizeof wanted, "%s/ddpsess", run);
	else
		snprintf(wanted, sizeof wanted, "%s", other);
	then = owner == uid ? 0 : DDPS_E_ACCESS;
	as_user(uid, by_default);
	if (owner == uid)
		cr_expect_eq(rmdir(other), 0, "the other one was used then");
	cr_expect_eq(rmdir(run), 0);
}

Test(watch_dir, the_default_with_a_directory_of_the_system)
{
	with_a_directory_of(SOMEBODY + 3, SOMEBODY + 3);
}

Test(watch_dir, a_directory_of_the_system_that_is_not_the_users)
{
	with_a_directory_of(SOMEBODY + 4, 0);
}
