/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that the target shares with the tester: what it passes, what its words say, and calls that fail. */
#include "lies/lies.h"
#include "conform/peer/shared.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

WRAPPED(cf_shared_open);
WRAPPED(cf_shared_send);
WRAPPED(cf_shared_recv);
WRAPPED(memfd_create);
WRAPPED(fallocate);
WRAPPED(mmap);
WRAPPED(fcntl);
WRAPPED(fstat);
WRAPPED(recvmsg);
WRAPPED(sendmsg);

#define PAGE 4096u
#define RING 262144u

/* Where they are: conform/peer/shared.h. */
enum { WRITTEN = 0, END = 8, READ = 64, READER_WOKEN = 256 };

enum { HELLO_WAYS = 8, WORD_WAYS = 7, SENT_WAYS = LIE_SHARED_WAYS - HELLO_WAYS - WORD_WAYS };

static _Thread_local bool
	opening; /* this thread is the tester, and opens its memory and the target's */
static const uint8_t *own;
static uint8_t *far; /* the target's, as the tester has it */
static void *truth;  /* the target's words, while the tester sees others */

/* A lie of set-up, and it is this one. */
static bool is_hello_lie(unsigned way, const char *where)
{
	return opening && lie_way() == way && lie_now(LIE_SHARED, where);
}

void __wrap_cf_shared_open(struct cf *cf)
{
	opening = cf->run->shared; /* the case may leave from within */
	__real_cf_shared_open(cf);
	opening = false;
}

void lie_shared_begin(void)
{
	opening = false;
	far = NULL;
	if (truth)
		munmap(truth, PAGE);
	truth = NULL;
}

/* ---- what is passed ---- */

static void drop_descriptor(struct msghdr *m)
{
	int fd;

	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(m)), sizeof fd);
	close(fd);
	m->msg_controllen = 0;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n;
	uint8_t *hello;

	if (opening && lie_call_fails("recvmsg", ECONNRESET))
		return -1;
	n = __real_recvmsg(fd, m, flags);
	if (!opening || n <= 0)
		return n;
	hello = m->msg_iov[0].iov_base;
	if (is_hello_lie(0, "the mark"))
		hello[7] ^= 1;
	else if (is_hello_lie(1, "the version"))
		hello[11] ^= 1;
	else if (is_hello_lie(2, "the size of a ring"))
		hello[13] ^= 1;
	else if (is_hello_lie(3, "a short message"))
		n--;
	else if (is_hello_lie(4, "no descriptor"))
		drop_descriptor(m);
	return n;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int err;

	if (opening && lie_call_fails("fstat", EIO))
		return -1;
	err = __real_fstat(fd, st);
	if (is_hello_lie(5, "the size of the memory"))
		st->st_size -= PAGE;
	else if (is_hello_lie(6, "pages that are not there"))
		st->st_blocks -= PAGE / 512;
	return err;
}

int __wrap_fcntl(int fd, int op, ...)
{
	va_list ap;
	void *arg;
	int value;

	va_start(ap, op);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (opening && lie_call_fails("fcntl", EINVAL))
		return -1;
	value = __real_fcntl(fd, op, arg);
	if (op == F_GET_SEALS && is_hello_lie(7, "a seal"))
		value &= ~F_SEAL_SHRINK;
	return value;
}

/* ---- what its words say ---- */

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	void *m;

	if (opening && lie_call_fails("mmap", ENOMEM))
		return MAP_FAILED;
	m = __real_mmap(at, len, prot, flags, fd, off);
	if (opening && m != MAP_FAILED && prot & PROT_WRITE)
		own = m;
	else if (opening && m != MAP_FAILED)
		far = m;
	return m;
}

static uint64_t get_index_of_lies(const uint8_t *memory, unsigned at)
{
	return __atomic_load_n((const uint64_t *)(const void *)(memory + at), __ATOMIC_SEQ_CST);
}

static void change_words(uint8_t *words, unsigned way)
{
	uint64_t in = get_index_of_lies(own, READ), out = get_index_of_lies(own, WRITTEN);
	const struct {
		unsigned at;
		uint64_t value;
	} lies[LIE_SHARED_WAYS] = {
		[8] = { WRITTEN, in + RING + 1 },
		[9] = { WRITTEN, in - 1 },
		[10] = { WRITTEN, UINT64_MAX },
		[11] = { END, 3 },
		[12] = { END, 2 | 1u << 16 },
		[13] = { READER_WOKEN, UINT32_MAX },
		[14] = { READER_WOKEN, UINT64_MAX << 32 },
		[15] = { READ, out + 1 },
		[16] = { READ, UINT64_MAX }, /* one less than nothing */
	};

	memcpy(words + lies[way].at, &lies[way].value, sizeof lies[way].value);
}

/*
 * For one call the tester sees a page of the liar's in place of the target's words, which the target changes at any
 * time.  The case may leave from within the call, and its memory goes then.
 */
static void show_words(unsigned way)
{
	uint8_t words[PAGE];

	memcpy(words, far, sizeof words);
	change_words(words, way);
	truth = mremap(far, 0, PAGE, MREMAP_MAYMOVE); /* the same page once more */
	if (truth == MAP_FAILED ||
	    __real_mmap(far, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			-1, 0) != far)
		abort();
	memcpy(far, words, sizeof words);
}

static void hide_words(void)
{
	if (mremap(truth, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, far) != far)
		abort();
	truth = NULL;
}

/* Whether this call of the tester's sees other words, in a way from @from on, below @to. */
static bool does_see_lie(unsigned from, unsigned to)
{
	return far && lie_way() >= from && lie_way() < to && lie_now(LIE_SHARED, "its words");
}

ssize_t __wrap_cf_shared_recv(struct cf *cf, void *p, size_t len)
{
	const bool lie = does_see_lie(HELLO_WAYS, HELLO_WAYS + WORD_WAYS);
	ssize_t n;

	if (lie)
		show_words(lie_way());
	n = __real_cf_shared_recv(cf, p, len);
	if (lie)
		hide_words();
	return n;
}

ssize_t __wrap_cf_shared_send(struct cf *cf, const void *p, size_t len)
{
	const bool lie = does_see_lie(HELLO_WAYS + WORD_WAYS, HELLO_WAYS + WORD_WAYS + SENT_WAYS);
	ssize_t n;

	if (lie)
		show_words(lie_way());
	n = __real_cf_shared_send(cf, p, len);
	if (lie)
		hide_words();
	return n;
}

/* ---- calls that fail ---- */

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return opening && lie_call_fails("memfd_create", EMFILE) ? -1
								 : __real_memfd_create(name, flags);
}

int __wrap_fallocate(int fd, int mode, off_t off, off_t len)
{
	return opening && lie_call_fails("fallocate", ENOSPC)
		       ? -1
		       : __real_fallocate(fd, mode, off, len);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return opening && lie_call_fails("sendmsg", EPIPE) ? -1 : __real_sendmsg(fd, m, flags);
}
