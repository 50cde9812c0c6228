/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers of shm:// that pass what they should not, and write the shared memory as they like. */
#include "unit/linger_fixture.h"
#include "unit/mpa_tcp/shm_fixture.h"
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static struct mpa_world w;
static char uri[160], said[300];

static void init(void)
{
	mpa_world_init(&w);
	w.env.log = (struct ddps_log){ .fn = shm_log, .user = said };
	w.answer_param.crc = false;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	said[0] = 0;
}

static void fini(void)
{
	mpa_world_fini(&w);
}

TestSuite(mpa_shm_attack, .init = init, .fini = fini, .timeout = 60);

/* ---- what is passed ---- */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define HELLO "ddpsess\n\0\0\0\2\0\4\0\0"

static void pass_message(int sock, const char *octets, size_t n, const int *fds, int nfds)
{
	pass_flags(sock, octets, n, fds, nfds, 0);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The listener refuses it, with a sentence, and keeps none of what was passed. */
static void check_refused(const char *octets, size_t n, const int *fds, int nfds, const char *why)
{
	struct shm_bare b = { .sock = shm_bare_connect(uri) };
	unsigned before;

	before = count_descriptors();
	pass_message(b.sock, octets, n, fds, nfds);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	cr_expect(strstr(said, why), "\"%s\" lacks \"%s\"", said, why);
	cr_expect(await_count(count_descriptors, before));
	cr_expect_eq(w.requests, 0);
	close(b.sock);
}

static int make_memory(size_t size, unsigned flags, unsigned seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	if (seals)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

Test(mpa_shm_attack, memory_that_could_be_taken_away_is_refused)
{
	static const unsigned few[] = { 0,
					F_SEAL_SHRINK,
					F_SEAL_SHRINK | F_SEAL_GROW,
					F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE,
					F_SEAL_GROW | F_SEAL_FUTURE_WRITE,
					F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };
	const size_t size = sizeof(struct ddps_shm_memory);
	int fd;

	for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
		fd = make_memory(size, MFD_ALLOW_SEALING, few[i]);
		check_refused(HELLO, 16, &fd, 1, "not sealed");
		close(fd);
	}
	fd = make_memory(size - 4096, MFD_ALLOW_SEALING, SEALS);
	check_refused(HELLO, 16, &fd, 1, "another size");
	close(fd);
	fd = make_memory(size + 4096, MFD_ALLOW_SEALING, SEALS);
	check_refused(HELLO, 16, &fd, 1, "another size");
	close(fd);
}

/* Whoever closes it last gives all of it back, and that takes its time. */
Test(mpa_shm_attack, memory_beyond_the_size_is_refused)
{
	const off_t size = sizeof(struct ddps_shm_memory);
	int fd = make_memory((size_t)size, MFD_ALLOW_SEALING, 0);

	cr_assert_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, size, 8 << 20), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	check_refused(HELLO, 16, &fd, 1, "another size");
	close(fd);
}

/* Its pages would come into being at the listener's cost, and stay for as long as the peer keeps it. */
Test(mpa_shm_attack, memory_that_its_maker_has_not_paid_for_is_refused)
{
	const off_t size = sizeof(struct ddps_shm_memory);
	const int at_a_time = 4 * (int)sysconf(_SC_PAGESIZE) / 512;
	struct stat st;
	int fd;

	fd = make_memory((size_t)size, MFD_ALLOW_SEALING, SEALS);
	check_refused(HELLO, 16, &fd, 1, "not allocated whole");
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_blocks, 0);
	close(fd);

	fd = make_memory((size_t)size, MFD_ALLOW_SEALING, 0); /* but for the end */
	cr_assert_eq(fallocate(fd, 0, 0, size - 4096), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	check_refused(HELLO, 16, &fd, 1, "not allocated whole");
	close(fd);

	/* As much, but behind the end, where one call gives it back. */
	fd = make_memory((size_t)size, MFD_ALLOW_SEALING, 0);
	cr_assert_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, size, size), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
	check_refused(HELLO, 16, &fd, 1, "not allocated whole");
	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_leq(st.st_blocks, at_a_time);
	close(fd);
}

/* Nobody gives a page back later. */
Test(mpa_shm_attack, no_page_is_missing_later)
{
	const off_t size = sizeof(struct ddps_shm_memory);
	struct shm_bare b = { .sock = shm_bare_connect(uri) };
	int fd;

	shm_bare_make(&b, &fd);
	cr_assert_eq(ddps_shm_pass(b.sock, fd), 0);
	shm_bare_write(&b, MPA_REQ "\0\1\0\0", 20);
	MPA_UNTIL(&w, w.requests == 1);
	cr_expect_eq(lseek(fd, 0, SEEK_HOLE), size);
	errno = 0;
	cr_expect_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size), -1);
	cr_expect_eq(errno, EPERM);
	errno = 0;
	cr_expect_eq(madvise(b.memory, (size_t)size, MADV_REMOVE), -1);
	cr_expect_eq(errno, EPERM);
	close(fd);
	shm_bare_close(&b);
}

/* What the listener has passed: nobody else writes there. */
Test(mpa_shm_attack, the_memory_of_the_other_side_is_only_read)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	char hello[16];
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	const size_t size = sizeof(struct ddps_shm_memory);
	struct shm_bare b;
	void *far;
	int fd;

	shm_bare_hello(&b, uri);
	MPA_UNTIL(&w, recvmsg(b.sock, &m, MSG_DONTWAIT) == 16);
	cr_assert_eq(CMSG_FIRSTHDR(&m)->cmsg_len, CMSG_LEN(sizeof fd));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	far = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_expect_eq(far, MAP_FAILED);
	far = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(far, MAP_FAILED);
	cr_expect_eq(mprotect(far, size, PROT_READ | PROT_WRITE), -1);
	cr_expect_eq(pwrite(fd, "x", 1, 0), -1);
	cr_expect_eq(ftruncate(fd, 0), -1);
	munmap(far, size);
	close(fd);
	shm_bare_close(&b);
}

/* ---- memory whose locks are held ---- */

static struct {
	int fd;
	void *page;
} stuck;

/* The page comes when the other end of userfaultfd likes: until then the write has what it locks. */
static void *write_for_ever(void *none)
{
	return pwrite(stuck.fd, stuck.page, 4096, 0) < 0 ? NULL : none;
}

/* A page that waits for @uffd's owner; NULL: the system does not let this process have one. */
static void *make_late_page(int *uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (*uffd < 0)
		return NULL;
	reg.range.start = (uintptr_t)page;
	reg.range.len = 4096;
	cr_assert_eq(ioctl(*uffd, UFFDIO_API, &api), 0);
	cr_assert_eq(ioctl(*uffd, UFFDIO_REGISTER, &reg), 0);
	return page;
}

static bool has_fault(int uffd)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };

	return poll(&p, 1, 10000) == 1 && p.revents == POLLIN;
}

/* As a file system of the peer's own (FUSE) would do it: the listener goes on without that lock. */
Test(mpa_shm_attack, memory_whose_lock_is_held_is_waited_for_by_nobody)
{
	static const unsigned seals[] = { 0, F_SEAL_SHRINK | F_SEAL_GROW };

	for (size_t i = 0; i < sizeof seals / sizeof seals[0]; i++) {
		struct ddps_shm_memory *m;
		pthread_t writer;
		int uffd;

		stuck.page = make_late_page(&uffd);
		if (!stuck.page)
			cr_skip_test("userfaultfd: %s", strerror(errno));
		stuck.fd = make_memory(sizeof *m, MFD_ALLOW_SEALING, 0);
		m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 stuck.fd, 0);
		cr_assert_neq(m, MAP_FAILED);
		if (seals[i])
			cr_assert_eq(fcntl(stuck.fd, F_ADD_SEALS, seals[i]), 0);
		cr_assert_eq(pthread_create(&writer, NULL, write_for_ever, NULL), 0);
		cr_assert(has_fault(uffd));
		check_refused(HELLO, 16, &stuck.fd, 1, "not sealed");
		close(uffd); /* the page is an ordinary one from now on */
		pthread_join(writer, NULL);
		close(stuck.fd);
		munmap(m, sizeof *m);
		munmap(stuck.page, 4096);
	}
}

Test(mpa_shm_attack, descriptors_that_are_no_memory_are_refused)
{
	int fds[6], n = 0;

	fds[0] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	cr_assert_geq(fds[0], 0);
	check_refused(HELLO, 16, fds, 1, "not sealed");
	close(fds[0]);
	fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check_refused(HELLO, 16, fds, 1, "not sealed");
	close(fds[0]);
	check_refused(HELLO, 16, NULL, 0, "passed no memory");
	for (; n < 6; n++)
		fds[n] = make_memory(sizeof(struct ddps_shm_memory), MFD_ALLOW_SEALING, SEALS);
	check_refused(HELLO, 16, fds, 2, "passed no memory");
	check_refused(HELLO, 16, fds, 6, "could not be taken");
	while (n)
		close(fds[--n]);
}

/* Pages of this kind may be missing when they are touched. */
Test(mpa_shm_attack, huge_pages_are_refused)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	if (fd < 0 || fcntl(fd, F_ADD_SEALS, SEALS))
		cr_skip_test("memfd_create: %s", strerror(errno));
	check_refused(HELLO, 16, &fd, 1, "ordinary pages");
	close(fd);
}

Test(mpa_shm_attack, other_protocols_are_refused)
{
	int fd = make_memory(sizeof(struct ddps_shm_memory), MFD_ALLOW_SEALING, SEALS);

	check_refused(HELLO, 15, &fd, 1, "does not speak");
	check_refused(MPA_REQ "\0\1\0\0", 16, &fd, 1, "does not speak");
	check_refused("ddpsess\n\0\0\0\1\0\4\0\0", 16, &fd, 1, "another version");
	check_refused("ddpsess\n\0\0\0\2\0\10\0\0", 16, &fd, 1, "another version");
	close(fd);
}

Test(mpa_shm_attack, a_peer_that_passes_nothing_is_refused_when_it_goes)
{
	struct shm_bare b = { .sock = shm_bare_connect(uri) };

	mpa_world_settle(&w);
	close(b.sock);
	MPA_UNTIL(&w, strstr(said, "closed before it passed any"));
	cr_expect_eq(w.requests, 0);
}

/* ---- what is written into the memory ---- */

/* The session ends, in an error that says so; whatever else happens is the peer's own loss. */
static void check_ended(struct shm_bare *b)
{
	shm_bare_ring(b);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
	cr_expect_eq(w.b[0].end.code, DDPS_E_PROTOCOL);
	cr_expect(strstr(w.b[0].end.text, "impossible index"), "%s", w.b[0].end.text);
	cr_expect(shm_bare_gone(b));
	shm_bare_close(b);
}

Test(mpa_shm_attack, octets_that_nobody_wrote)
{
	struct shm_bare b;

	shm_bare_session(&w, &b, uri);
	__atomic_store_n(&b.memory->words.head, b.out.at + DDPS_SHM_OCTETS + 1, __ATOMIC_SEQ_CST);
	check_ended(&b);
}

Test(mpa_shm_attack, octets_that_were_taken_back)
{
	struct shm_bare b;

	shm_bare_session(&w, &b, uri);
	__atomic_store_n(&b.memory->words.head, b.out.at - 1, __ATOMIC_SEQ_CST);
	check_ended(&b);
}

Test(mpa_shm_attack, octets_read_that_nobody_wrote)
{
	static uint8_t octets[60000];
	uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };
	struct shm_bare b;

	shm_bare_session(&w, &b, uri);
	shm_bare_write(&b, fpdu, sizeof fpdu); /* opens the fence */
	MPA_UNTIL(&w, w.b[0].segments == 1);
	__atomic_store_n(&b.memory->words.tail, UINT64_MAX, __ATOMIC_SEQ_CST);
	mpa_send_segments(&w.b[0], octets, sizeof octets, 8);
	check_ended(&b);
}

/* Before the Request is whole, too: the listener goes on. */
Test(mpa_shm_attack, a_bad_index_before_the_request)
{
	struct shm_bare b;

	shm_bare_hello(&b, uri);
	mpa_world_settle(&w);
	__atomic_store_n(&b.memory->words.head, UINT64_MAX, __ATOMIC_SEQ_CST);
	shm_bare_ring(&b);
	MPA_UNTIL(&w, shm_bare_gone(&b));
	cr_expect(strstr(said, "impossible index"), "%s", said);
	shm_bare_close(&b);
	shm_bare_session(&w, &b, uri);
	cr_expect_eq(w.requests, 1);
	shm_bare_close(&b);
}

/* The FPDU's length changes while it is read: it was copied before. */
Test(mpa_shm_attack, octets_that_change_while_they_are_read)
{
	struct shm_bare b;
	uint32_t seed = 3;

	shm_bare_session(&w, &b, uri);
	for (unsigned i = 0; i < 2000 && !w.b[0].called[UP_FAULT] && !w.b[0].called[UP_CLOSED];
	     i++) {
		uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };

		shm_bare_write(&b, fpdu, sizeof fpdu);
		for (int k = 0; k < 8; k++)
			b.memory->octets[mpa_random(&seed) % DDPS_SHM_OCTETS] =
				(uint8_t)mpa_random(&seed);
		mpa_world_settle(&w);
	}
	shm_bare_close(&b);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED] || w.b[0].called[UP_PEER_CLOSED]);
}

/* A peer that says it sleeps, and rings all the time, costs a call for each of its own, and others nothing. */
Test(mpa_shm_attack, bells_and_flags_without_end)
{
	struct shm_bare b;

	shm_bare_session(&w, &b, uri);
	for (unsigned i = 0; i < 1000; i++) {
		b.memory->words.writer_sleeps = b.memory->words.reader_sleeps = i;
		b.memory->words.reader_woken = b.memory->words.writer_woken = i;
		for (int k = 0; k < 50; k++)
			shm_bare_ring(&b);
		mpa_world_settle(&w);
	}
	cr_assert_eq(shm_connect(&w, uri), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER]);
	shm_bare_close(&b);
	MPA_UNTIL(&w, w.b[0].called[UP_CLOSED]);
}

/* ---- what is written at any time, by a thread ---- */

struct shm_liar {
	struct shm_bare b;
	uint32_t seed;
	bool done;
};

/* Mostly what could be true, so that the session goes on for a while. */
static void tell_lie(struct shm_liar *l, uint64_t *head)
{
	struct ddps_shm_words *own = &l->b.memory->words;
	const struct ddps_shm_words *far = &l->b.far->words;
	const uint32_t r = mpa_random(&l->seed), at = mpa_random(&l->seed) % DDPS_SHM_OCTETS;

	switch (r % 8) {
	case 0:
		*head += at % 64;
		__atomic_store_n(&own->head, *head, __ATOMIC_RELAXED);
		break;
	case 1:
		__atomic_store_n(&own->tail, __atomic_load_n(&far->head, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n(at % 2 ? &own->reader_sleeps : &own->writer_sleeps, r,
				 __ATOMIC_RELAXED);
		break;
	case 3:
		__atomic_store_n(at % 2 ? &own->reader_woken : &own->writer_woken, r,
				 __ATOMIC_RELAXED);
		break;
	case 4:
		shm_bare_ring(&l->b);
		break;
	case 5:
		if (at % 1024)
			break;
		__atomic_store_n(at % 4096 ? &own->head : &own->tail, (uint64_t)r << 20,
				 __ATOMIC_RELAXED);
		break;
	default:
		__atomic_store_n(&l->b.memory->octets[at], (uint8_t)(r >> 8), __ATOMIC_RELAXED);
	}
}

static void *lie_all_the_time(void *arg)
{
	struct shm_liar *l = arg;
	uint64_t head = l->b.out.at;

	while (!__atomic_load_n(&l->done, __ATOMIC_RELAXED))
		tell_lie(l, &head);
	return NULL;
}

/* One of the sessions lies, and ends; what the other one brings is right before and after. */
Test(mpa_shm_attack, words_and_octets_that_a_thread_changes_at_any_time)
{
	enum { LIARS = 12, TURNS = 400, LEN = 1000 };
	static uint8_t pattern[LEN];
	const uint8_t fpdu[24] = { 0, 18, 0x41, 0x43, [15] = 1 };

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 13);
	cr_assert_eq(shm_connect(&w, uri), 0);
	MPA_UNTIL(&w, w.a.called[UP_ANSWER] && w.requests == 1);
	for (unsigned i = 1; i <= LIARS; i++) {
		struct pollfd p = { .fd = ddps_loop_fd(w.env.loop), .events = POLLIN };
		struct shm_liar l = { .seed = i };
		struct mpa_side *s = &w.b[i];
		pthread_t thread;

		shm_bare_session(&w, &l.b, uri);
		shm_bare_write(&l.b, fpdu, sizeof fpdu); /* opens the fence */
		MPA_UNTIL(&w, s->segments == 1);
		cr_assert_eq(pthread_create(&thread, NULL, lie_all_the_time, &l), 0);
		mpa_send_segments(s, pattern, LEN, TURNS);
		mpa_send_segments(&w.a, pattern, LEN, 1);
		for (int k = 0; k < TURNS && !s->called[UP_CLOSED]; k++)
			if (poll(&p, 1, 1) > 0)
				cr_assert_geq(ddps_loop_run(w.env.loop), 0);
		__atomic_store_n(&l.done, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		shm_bare_close(&l.b);
		MPA_UNTIL(&w, s->called[UP_CLOSED] || s->called[UP_FAULT]);
		cr_expect(s->called[UP_FAULT] || s->end.text[0], "liar %u", i);
		MPA_UNTIL(&w, w.b[0].segments == i);
	}
	mpa_expect_received(&w.b[0], pattern, LEN, LIARS);
	cr_expect_eq(w.a.called[UP_CLOSED], 0);
}

/* ---- those that say nothing ---- */

/* Whoever says nothing makes way for other users, and the memory of those that say nothing has a bound. */
static void flood_half_open(bool bells)
{
	enum { PLACES = 4, MANY = 12 };
	struct shm_bare flood[MANY], b;

	ddps_shm_provider.listener_free(w.listener);
	w.lp.max_half_open = PLACES;
	w.lp.setup_ms = 0;
	cr_assert_eq(shm_listen(&w, "shm://@", uri, sizeof uri), 0);
	for (int i = 0; i < MANY; i++) {
		shm_bare_hello(&flood[i], uri);
		if (bells)
			shm_bare_ring(&flood[i]);
		mpa_world_settle(&w);
	}
	cr_expect_gt(w.env.half_open_full, 0);
	cr_expect_eq(w.env.half_open_given_up, MANY - PLACES);
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(shm_bare_gone(&flood[i]), i < MANY - PLACES, "%d", i);
	shm_bare_session(&w, &b, uri);
	for (int i = 0; i < MANY; i++)
		shm_bare_close(&flood[i]);
	shm_bare_close(&b);
}

Test(mpa_shm_attack, half_open_flood_has_a_bound)
{
	flood_half_open(false);
}

/* Octets that nobody reads are no reason to stay. */
Test(mpa_shm_attack, half_open_flood_of_bells_has_a_bound)
{
	flood_half_open(true);
}
