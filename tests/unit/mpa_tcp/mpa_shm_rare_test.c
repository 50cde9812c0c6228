/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory where the system does what it seldom does: no memory, no descriptors, calls that fail. */
#include "mpa_tcp/shm/mpa_shm.h"
#include "unit/mem_fixture.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include "unit/sys_fixture.h"
#include <fcntl.h>

static struct mpa_world w;
static char uri[160], said[300];
static long live;

static void init(void)
{
	live = mem_live();
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = shm_log, .user = said };
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
}

static void fini(void)
{
	mpa_world_fini(&w);
	cr_expect_eq(mem_live(), live);
	cr_expect_eq(shm_count_memories(), 0);
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

/* ---- what errno and descriptors were before ---- */

/* A call that was interrupted is made again; one that went well is not, whatever errno has been. */
Test(mpa_shm_rare, an_errno_of_before_says_nothing)
{
	static const int before[] = { 0, EINTR, EINVAL, EAGAIN, ENOMEM };
	static const char *const calls[] = { "", "fallocate", "sendmsg", "recvmsg" };

	for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
		const unsigned fds = count_rare_descriptors();
		const struct ddps_shm_memory *far;
		struct ddps_shm_memory *own;
		const char *why;
		int socks[2], fd;

		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks), 0);
		sys_fail(calls[i % 4], 0, 1, EINTR);
		errno = before[i];
		own = ddps_shm_make(&fd);
		cr_assert(own);
		cr_expect_eq(count_rare_descriptors(), fds + 3);
		errno = before[i];
		cr_expect_eq(ddps_shm_pass(socks[0], fd), 0);
		errno = before[i];
		far = ddps_shm_take(socks[1], &why);
		cr_expect(far, "%s", why);
		cr_expect_eq(sys_failed(), i % 4 != 0, "%s", calls[i % 4]);
		errno = before[i];
		cr_expect_null(ddps_shm_take(socks[1], &why));
		cr_expect_eq(errno, EAGAIN);
		close(socks[0]);
		errno = before[i];
		cr_expect_null(ddps_shm_take(socks[1], &why));
		cr_expect_eq(errno, ECONNRESET);
		cr_expect_str_eq(why, "");
		errno = before[i];
		cr_expect_eq(ddps_shm_bells(socks[1], 16), 0);
		errno = before[i];
		cr_expect(ddps_shm_close(socks[1]),
			  "it is nobody's: nothing is done, and nothing waits");
		cr_expect_eq(errno, before[i]);
		close(socks[1]);
		close(fd);
		ddps_shm_unmap(own);
		ddps_shm_unmap(far);
		cr_expect_eq(count_rare_descriptors(), fds);
	}
}

Test(mpa_shm_rare, memory_that_cannot_be_made)
{
	static const char *const calls[] = { "fallocate", "mmap" };

	for (int i = 0; i < 2; i++) {
		const unsigned fds = count_rare_descriptors();
		int fd = 7;

		sys_fail(calls[i], 0, 1, ENOSPC);
		cr_expect_null(ddps_shm_make(&fd));
		cr_expect_eq(errno, ENOSPC);
		cr_expect_eq(fd, -1);
		cr_expect_eq(count_rare_descriptors(), fds);
	}
}

static unsigned zero_after; /* sockets that are made before descriptor 0 is free */

static int free_descriptor_0(int domain, int type, int protocol)
{
	const int fd = sys_socket(domain, type, protocol);

	if (zero_after && !--zero_after)
		close(0);
	return fd;
}

/* A program may have closed its standard input: then the next thing that is opened is descriptor 0. */
Test(mpa_shm_rare, descriptor_0_is_one_as_others_are)
{
	char path[60], at[160];
	struct mpa_world other;

	sys_instead.socket = free_descriptor_0;
	mpa_world_init(&other);
	snprintf(path, sizeof path, "shm:///tmp/shm-zero-%d", (int)getpid());
	cr_expect_eq(fcntl(0, F_GETFD) < 0, false);
	zero_after = 1; /* the folder, which is locked, and not kept */
	sys_fail("flock", 2, 1, EINTR);
	cr_assert_eq(shm_listen(&other, path, at, sizeof at), 0);
	cr_expect_lt(fcntl(0, F_GETFD), 0);
	cr_expect_eq(open("/dev/null", O_RDWR), 0);
	ddps_shm_provider.listener_free(other.listener);
	zero_after = 1; /* the same, and it cannot be locked */
	sys_fail("flock", 0, 1, ENOLCK);
	cr_assert_eq(shm_listen(&other, path, at, sizeof at), 0);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_lt(fcntl(0, F_GETFD), 0);
	ddps_shm_provider.listener_free(other.listener);
	sys_fail(NULL, 0, 0, 0);
	cr_assert_eq(shm_listen(&other, path, at, sizeof at), 0); /* the listener */
	cr_expect_geq(fcntl(0, F_GETFD), 0);
	ddps_shm_provider.listener_free(other.listener);
	other.listener = NULL;
	cr_expect_lt(fcntl(0, F_GETFD), 0);
	cr_assert_eq(shm_connect(&w, uri), 0); /* the initiator's socket */
	cr_expect_geq(fcntl(0, F_GETFD), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	w.a.llp->ops->free(w.a.llp);
	w.a.llp = NULL;
	cr_expect_lt(fcntl(0, F_GETFD), 0);
	mpa_world_fini(&other);
}

/* Of nothing that was not given to it, standard input is not closed. */
Test(mpa_shm_rare, a_folder_that_cannot_be_opened_is_not_locked)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct ddps_shm_file file;

	snprintf(un.sun_path, sizeof un.sun_path, "/tmp/shm-none-%d/x", (int)getpid());
	cr_expect_eq(ddps_mpa_shm_bind((struct sockaddr *)&un, sizeof un, 8, &file), -1);
	cr_expect_eq(errno, ENOENT);
	cr_expect_geq(fcntl(0, F_GETFD), 0);
}

Test(mpa_shm_rare, an_address_of_another_kind)
{
	const struct ddps_setup setup = { .enhanced = false };
	const struct sockaddr_in in = mpa_loopback(1);
	struct sockaddr_storage ss = { .ss_family = AF_UNIX };
	struct ddps_uri u = { .scheme = "shm" };

	cr_expect_eq(ddps_shm_provider.connect(&w.env, &u, (const struct sockaddr *)&in, sizeof in,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     DDPS_E_ADDRESS);
	cr_expect_eq(ddps_shm_provider.connect(&w.env, &u, (struct sockaddr *)&ss, sizeof ss,
					       &setup, &w.a.p, &mpa_up, &w.a, &w.a.llp),
		     DDPS_E_ADDRESS);
	cr_expect_null(w.a.llp);
}
