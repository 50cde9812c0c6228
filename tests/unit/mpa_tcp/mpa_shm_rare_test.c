/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory where the system does what it seldom does: no memory, no descriptors, calls that fail. */
#include "unit/mem_fixture.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>

static struct mpa_world w;
static char uri[160], said[300];

static void init(void)
{
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = shm_log, .user = said };
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
}

static void fini(void)
{
	mpa_world_fini(&w);
}

TestSuite(mpa_shm_rare, .init = init, .fini = fini, .timeout = 60);

static unsigned count_rare_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Whatever happens at the initiator, it is said, nothing is left, and the next try goes well. */
static void check_connect_fails(const char *call, unsigned good, int err)
{
	const unsigned fds = count_rare_descriptors();
	int got;

	sys_fail(call, good, 1, err);
	got = shm_connect(&w, uri);
	cr_expect_eq(sys_failed(), 1, "%s", call);
	if (got) {
		cr_expect_eq(got, DDPS_E_SYSTEM, "%s: %d", call, got);
	} else {
		MPA_UNTIL(&w, w.a.called[UP_CLOSED]);
		cr_expect_eq(w.a.end.sys_errno, err, "%s: %s", call, w.a.end.text);
		w.a.llp->ops->free(w.a.llp);
	}
	sys_fail(NULL, 0, 0, 0);
	memset(&w.a, 0, sizeof w.a);
	w.a.w = &w;
	w.a.p = mpa_param(true, false);
	mpa_world_settle(&w);
	cr_expect_eq(count_rare_descriptors(), fds, "%s", call);
}

Test(mpa_shm_rare, calls_of_an_initiator_that_fail)
{
	check_connect_fails("socket", 0, EMFILE);
	check_connect_fails("fallocate", 0, ENOMEM);
	check_connect_fails("mmap", 0, ENOMEM);
	check_connect_fails("sendmsg", 0, EIO);
	check_connect_fails("epoll_ctl", 0, ENOSPC);
	cr_assert_eq(shm_connect(&w, uri), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
}

Test(mpa_shm_rare, allocations_of_an_initiator_that_fail)
{
	const unsigned fds = count_rare_descriptors();
	unsigned n = 1;

	for (;; n++) {
		int err;

		mem_fail(n);
		err = shm_connect(&w, uri);
		if (!mem_failed())
			break;
		cr_assert_eq(err, DDPS_E_NOMEM, "%u", n);
		cr_expect_eq(count_rare_descriptors(), fds, "%u", n);
	}
	mem_fail(0);
	cr_expect_gt(n, 3, "the connection, its start and its memory");
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
}

/* The listener says it, the peer sees an end, and the next one is served. */
static void check_accept_fails(const char *call, unsigned good, int err, const char *why)
{
	struct shm_bare b;

	said[0] = 0;
	shm_bare_hello(&b, uri);
	sys_fail(call, good, 1, err);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	cr_expect_eq(sys_failed(), 1, "%s", call);
	sys_fail(NULL, 0, 0, 0);
	cr_expect(strstr(said, why), "%s: \"%s\"", call, said);
	cr_expect_eq(w.requests, 0);
	shm_bare_close(&b);
}

Test(mpa_shm_rare, calls_of_a_responder_that_fail)
{
	struct shm_bare b;

	check_accept_fails("mmap", 0, ENOMEM, "could not be mapped");
	check_accept_fails("mmap", 1, ENOMEM, "of this side: Cannot allocate memory");
	check_accept_fails("fallocate", 0, ENOSPC, "of this side: No space left");
	check_accept_fails("sendmsg", 0, EIO, "of this side: Input/output error");
	check_accept_fails("fstat", 1, EIO, "another size");
	shm_bare_session(&w, &b, uri);
	shm_bare_close(&b);
}

Test(mpa_shm_rare, calls_of_a_listener_that_fail)
{
	const unsigned fds = count_rare_descriptors();
	struct mpa_world other;
	char at[160];

	mpa_world_init(&other);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(shm_listen(&other, "shm://@", at, sizeof at), DDPS_E_SYSTEM);
	sys_fail("bind", 0, 1, EACCES);
	cr_expect_eq(shm_listen(&other, "shm://@", at, sizeof at), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EACCES);
	sys_fail("listen", 0, 1, EOPNOTSUPP);
	cr_expect_eq(shm_listen(&other, "shm://@", at, sizeof at), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EOPNOTSUPP);
	sys_fail(NULL, 0, 0, 0);
	mpa_world_fini(&other);
	cr_expect_eq(count_rare_descriptors(), fds);
}

/* A peer that passes its memory late, and one that goes before: in both orders of events. */
Test(mpa_shm_rare, the_memory_comes_late)
{
	struct shm_bare b = { .sock = shm_bare_connect(uri) };
	uint8_t reply[20];
	struct iovec iov = { reply, sizeof reply };
	bool wake;
	int fd;

	mpa_world_settle(&w);
	shm_bare_make(&b, &fd);
	iov = (struct iovec){ (void *)(uintptr_t)(MPA_REQ "\0\1\0\0"), 20 };
	cr_assert_eq(ddps_shm_write(&b.out, &iov, 1, &wake), 20);
	cr_assert_eq(ddps_shm_pass(b.sock, fd), 0);
	close(fd);
	MPA_UNTIL(&w, shm_bare_meets(&b));
	MPA_UNTIL(&w, w.requests && ddps_shm_filled(&b.in) >= 20);
	shm_bare_close(&b);
}
