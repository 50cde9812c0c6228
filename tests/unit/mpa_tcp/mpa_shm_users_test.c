/* SPDX-License-Identifier: BSD-2-Clause */
/* Other users at shm://: some are let in, some are given nothing, and a session names its peer. */
#include "support/child.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct mpa_world w;
static char uri[160];

static void init(void)
{
	mpa_world_init(&w);
	w.answer_param.crc = false;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
}

static void fini(void)
{
	mpa_world_fini(&w);
}

TestSuite(mpa_shm_users, .init = init, .fini = fini, .timeout = 60);

static void note_stranger(void *user, enum ddps_log_level level, const char *facility,
			  const char *message)
{
	unsigned *lines = user;

	(void)facility;
	*lines += level <= DDPS_LOG_WARN && strstr(message, "refused user 12345: ") &&
		  strstr(message, "listen at a file");
}

/* Abstract names have no permissions: they are between processes of one user.  Others are counted, and fill no log. */
Test(mpa_shm_users, another_user_is_refused_at_an_abstract_name)
{
	enum { MANY = 25 };
	unsigned lines = 0;
	int status = 0;
	pid_t pid;

	if (geteuid())
		return;
	w.env.log = (struct ddps_log){ .fn = note_stranger, .user = &lines };
	pid = fork_at_rest();
	if (!pid) {
		if (seteuid(12345))
			leave_child_fixture(1);
		for (int i = 0; i < MANY; i++) {
			int sock = shm_bare_connect(uri);
			char octet;

			if (recv(sock, &octet, 1, 0) > 0)
				leave_child_fixture(2);
			close(sock);
		}
		leave_child_fixture(0);
	}
	MPA_UNTIL(&w,
		  (w.env.told[-DDPS_E_ACCESS].since = ddps_now(), /* all of it is in one second */
		   w.env.refused[DDPS_REFUSED_NOT_LISTED] == MANY));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect_eq(w.requests, 0);
	cr_expect_eq(lines, 10);
}

/* A child that is another user, once it has said so by @ready; it ends when @up does. */
static pid_t begin_other_user(void (*play)(int arg), int arg, int *up)
{
	int ready[2], ends[2];
	char octet;
	pid_t pid;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork_at_rest();
	if (!pid) {
		close(ends[1]);
		if (setegid(12346) || seteuid(12345))
			leave_child_fixture(1);
		play(arg);
		if (write(ready[1], "", 1) != 1 || read(ends[0], &octet, 1))
			leave_child_fixture(2);
		leave_child_fixture(0);
	}
	close(ready[1]);
	close(ends[0]);
	*up = ends[1];
	cr_assert_eq(read(ready[0], &octet, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_other_user(pid_t pid, int up)
{
	int status = 1;

	close(up);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}

static void request_as_other(int arg)
{
	struct shm_bare b;

	(void)arg;
	shm_bare_hello(&b, uri);
	shm_bare_write(&b, MPA_REQ "\0\1\0\0", 20);
}

/* At a file everybody may call whom its mode lets: the session says who it is. */
Test(mpa_shm_users, another_user_is_named_at_a_file)
{
	struct ddps_conn_info info = { .mulpdu = 0 };
	char path[60];
	pid_t pid;
	int up;

	if (geteuid())
		return;
	ddps_shm_provider.listener_free(w.listener);
	snprintf(path, sizeof path, "shm:///tmp/shm-other-%d", (int)getpid());
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	cr_assert_eq(chmod(path + strlen("shm://"), 0777), 0);
	pid = begin_other_user(request_as_other, 0, &up);
	MPA_UNTIL(&w, w.requests == 1);
	w.b[0].llp->ops->info(w.b[0].llp, &info);
	cr_expect_eq(info.shm.uid, 12345);
	cr_expect_eq(info.shm.gid, 12346);
	cr_expect_eq(info.shm.pid, (uint32_t)pid);
	end_other_user(pid, up);
}

static void listen_as_other(int sock)
{
	if (listen(sock, 4))
		leave_child_fixture(3);
}

/* Anybody can have an abstract name: whoever calls there gives no memory to another user. */
Test(mpa_shm_users, another_user_that_listens_at_an_abstract_name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = sizeof un;
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), up, call;
	char other[60];
	pid_t pid;

	if (geteuid())
		return;
	cr_assert_eq(bind(sock, (struct sockaddr *)&un, sizeof un.sun_family), 0);
	cr_assert_eq(getsockname(sock, (struct sockaddr *)&un, &len), 0);
	snprintf(other, sizeof other, "shm://@%.*s", (int)(len - 3), un.sun_path + 1);
	pid = begin_other_user(listen_as_other, sock, &up);
	cr_assert_eq(shm_connect(&w, other), 0);
	MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
	cr_expect_eq(w.a.end.sys_errno, EACCES);
	cr_expect(strstr(w.a.end.text, "another user"), "%s", w.a.end.text);
	call = accept(sock, NULL, NULL);
	cr_expect_eq(recv(call, other, sizeof other, 0), 0);
	close(call);
	end_other_user(pid, up);
	close(sock);
}
