/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers of shm:// that pass descriptors whose closing blocks: the context goes on. */
#include "support/child.h"
#include "unit/linger_fixture.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include <fcntl.h>
#include <sys/wait.h>

#define HELLO  "ddpsess\n\0\0\0\2\0\4\0\0"
#define SOON_S 5 /* far less than it lingers */
#define MANY   200

static struct mpa_world w;
static char uri[160], said[300];
static uint64_t begun;

static void init(void)
{
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = shm_log, .user = said };
	w.answer_param.crc = false;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	begun = ddps_now();
}

static void fini(void)
{
	mpa_world_fini(&w);
}

TestSuite(mpa_shm_linger, .init = init, .fini = fini, .timeout = 60);

/* Another one is served, and it has not taken long. */
static void expect_served(void)
{
	struct shm_bare b;

	shm_bare_session(&w, &b, uri);
	cr_expect_lt(ddps_now() - begun, SOON_S * UINT64_C(1000000000));
	shm_bare_close(&b);
}

Test(mpa_shm_linger, in_place_of_memory)
{
	static char path[60];
	struct shm_bare b = { .sock = shm_bare_connect(uri) };
	int far = pass_lingering(b.sock, HELLO, 16, 0);

	MPA_UNTIL(&w, shm_bare_gone(&b));
	cr_expect(strstr(said, "not sealed"), "%s", said);
	close(b.sock);
	expect_served();
	close(far);
	/* at a file, too */
	ddps_shm_provider.listener_free(w.listener);
	snprintf(path, sizeof path, "shm:///tmp/shm-linger-%d", (int)getpid());
	cr_assert_eq(shm_listen(&w, path, uri, sizeof uri), 0);
	b.sock = shm_bare_connect(uri);
	far = pass_lingering(b.sock, HELLO, 16, 0);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	close(b.sock);
	close(far);
	shm_bare_hello(&b, uri);
	shm_bare_write(&b, MPA_REQ "\0\1\0\0", 20);
	MPA_UNTIL(&w, w.requests == 2);
	cr_expect_lt(ddps_now() - begun, SOON_S * UINT64_C(1000000000));
	shm_bare_close(&b);
}

/* Two of them, more than there is room for, and no hello. */
Test(mpa_shm_linger, several)
{
	struct shm_bare b = { .sock = shm_bare_connect(uri) };
	int far[7], fds[7];

	for (int i = 0; i < 7; i++)
		fds[i] = make_lingering(&far[i]);
	pass_flags(b.sock, HELLO, 16, fds, 2, 0);
	close(fds[0]);
	close(fds[1]);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	close(b.sock);
	b.sock = shm_bare_connect(uri);
	pass_flags(b.sock, "no hello", 8, fds + 2, 5, 0);
	for (int i = 2; i < 7; i++)
		close(fds[i]);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	close(b.sock);
	expect_served();
	for (int i = 0; i < 7; i++)
		close(far[i]);
}

/* The session ends, also if it is idle: nobody has reason to pass any. */
static void check_bell(int flags)
{
	struct shm_bare b;
	int far;

	shm_bare_session(&w, &b, uri);
	mpa_world_settle(&w);
	far = pass_lingering(b.sock, "", 1, flags);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_PROTOCOL);
	cr_expect(strstr(w.b[0].end.text, "descriptors where none are taken"), "%s",
		  w.b[0].end.text);
	cr_expect(shm_bare_gone(&b));
	cr_expect_lt(ddps_now() - begun, SOON_S * UINT64_C(1000000000));
	close(far);
	shm_bare_close(&b);
}

Test(mpa_shm_linger, with_a_bell)
{
	check_bell(0);
}

/* What is urgent the kernel would throw away at the next read. */
Test(mpa_shm_linger, with_an_urgent_bell)
{
	check_bell(MSG_OOB);
}

/* Nobody has read it when the session ends. */
Test(mpa_shm_linger, that_are_unread_at_the_end)
{
	struct shm_bare b;
	int far;

	shm_bare_session(&w, &b, uri);
	far = pass_lingering(b.sock, "", 1, 0);
	w.b[0].llp->ops->free(w.b[0].llp);
	w.b[0].llp = NULL;
	cr_expect(shm_bare_gone(&b));
	cr_expect_lt(ddps_now() - begun, SOON_S * UINT64_C(1000000000));
	close(far);
	shm_bare_close(&b);
}

/* Those that wait to be closed are as many as may be: nobody else is accepted until that is over. */
Test(mpa_shm_linger, without_end)
{
	struct shm_bare b;
	int far[MANY], n = 0;

	for (; n < MANY && !strstr(said, "wait to be closed"); n++) {
		b.sock = shm_bare_connect(uri);
		far[n] = pass_lingering(b.sock, HELLO, 16, 0);
		MPA_UNTIL(&w, shm_bare_gone(&b) || strstr(said, "wait to be closed"));
		close(b.sock);
	}
	cr_expect_lt(n, MANY);
	while (n)
		close(far[--n]);
	shm_bare_session(&w, &b, uri);
	shm_bare_close(&b);
}

/* However many call, and whatever max_half_open says: each that is accepted may pass descriptors. */
Test(mpa_shm_linger, of_many_that_were_accepted_before)
{
	struct shm_bare b;
	int fds[MANY];

	ddps_shm_provider.listener_free(w.listener);
	w.lp.max_half_open = 1024;
	w.lp.setup_ms = 0;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	for (int i = 0; i < MANY; i++) {
		fds[i] = shm_bare_connect(uri);
		mpa_world_settle(&w);
	}
	cr_expect_eq(w.env.half_open_given_up, MANY - 64);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	shm_bare_session(&w, &b, uri);
	shm_bare_close(&b);
}

/* The listener ends before it has accepted; its name is free immediately. */
Test(mpa_shm_linger, of_callers_that_wait)
{
	struct shm_bare b = { .sock = shm_bare_connect(uri) }, idle = { .sock = -1 };
	int far = pass_lingering(b.sock, HELLO, 16, 0);
	char name[sizeof uri];

	idle.sock = shm_bare_connect(uri);
	ddps_shm_provider.listener_free(w.listener);
	cr_expect(shm_bare_gone(&b));
	cr_expect(shm_bare_gone(&idle));
	snprintf(name, sizeof name, "%s", uri);
	cr_assert_eq(shm_listen(&w, name, uri, sizeof uri), 0);
	close(b.sock);
	close(idle.sock);
	expect_served();
	close(far);
}

/* Whom an abstract name refuses need not be read for that. */
Test(mpa_shm_linger, of_another_user)
{
	int passed[2], up[2], status = 1;
	char octet;
	pid_t pid;

	if (geteuid())
		return;
	cr_assert_eq(pipe2(passed, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(up, O_CLOEXEC), 0);
	pid = fork_at_rest();
	if (!pid) {
		int far, fd = make_lingering(&far);
		int sock = seteuid(12345) ? -1 : shm_bare_connect(uri);

		close(up[1]);
		pass_flags(sock, HELLO, 16, &fd, 1, 0);
		close(fd);
		if (write(passed[1], "", 1) != 1 || recv(sock, &octet, 1, 0) > 0 ||
		    read(up[0], &octet, 1))
			leave_child_fixture(1);
		leave_child_fixture(0);
	}
	close(passed[1]);
	cr_assert_eq(read(passed[0], &octet, 1), 1);
	MPA_UNTIL(&w, w.env.refused[DDPS_REFUSED_NOT_LISTED] == 1);
	expect_served();
	close(up[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	close(up[0]);
	close(passed[0]);
}
