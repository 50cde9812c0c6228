/* SPDX-License-Identifier: BSD-2-Clause */
/* What a side of a session through shared memory does that keeps no rule. */
#include "fuzz.h"
#include "shm_stranger.h"
#include "sim/kern.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

static socklen_t get_stranger_address(struct sockaddr_un *un)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX, .sun_path = STRANGER_AT };
	return sizeof *un;
}

void stranger_open(struct stranger *s, bool calls)
{
	struct sockaddr_un un;
	const socklen_t len = get_stranger_address(&un);
	int fd;

	kern.host = 1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(fd >= 0);
	s->listener = s->sock = -1;
	if (calls) {
		FUZZ_CHECK(!connect(fd, (struct sockaddr *)&un, len));
		s->sock = fd;
	} else {
		FUZZ_CHECK(!bind(fd, (struct sockaddr *)&un, len) && !listen(fd, 4));
		s->listener = fd;
	}
}

void stranger_accept(struct stranger *s)
{
	if (s->sock < 0 && s->listener >= 0)
		s->sock = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Its memory, or what it passes in place of it. */
int stranger_memory(struct stranger *s, unsigned how)
{
	const off_t size = sizeof *s->own;
	int fd = -1;

	if (s->own || how & 1) {
		fd = memfd_create("strange", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		FUZZ_CHECK(fd >= 0 && !fallocate(fd, 0, 0, how & 2 ? size + 4096 : size) &&
			   fcntl(fd, F_ADD_SEALS, how & 4 ? SEALS & ~F_SEAL_SHRINK : SEALS) >= 0);
		return fd;
	}
	s->own = ddps_shm_make(&fd);
	FUZZ_CHECK(s->own);
	ddps_shm_open_writer(&s->out, s->own);
	ddps_shm_open_reader(&s->in, s->own);
	return fd;
}

void stranger_send(struct stranger *s, const void *octets, size_t n, int fd)
{
	_Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)octets, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (s->sock < 0 || !n)
		return;
	if (fd >= 0) {
		m.msg_control = room;
		m.msg_controllen = sizeof room;
		cm = CMSG_FIRSTHDR(&m);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(cm), &fd, sizeof fd);
	}
	(void)sendmsg(s->sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum greeting stranger_hello(struct stranger *s, unsigned how, unsigned what)
{
	uint8_t hello[17] = "ddpsess\n\0\0\0\2\0\4\0";
	const size_t n = how & 64 ? what % 18 : 16;
	const unsigned memory = how & 16 ? what & 7 : 0;
	const int fd = how & 8 ? -1 : stranger_memory(s, memory);

	if (how & 32)
		hello[what % 16] ^= (uint8_t)(1 + what / 16);
	stranger_send(s, hello, n, fd);
	if (fd >= 0)
		close(fd);
	if (!n || s->sock < 0)
		return NO_GREETING;
	return fd < 0 || n < 16 || how & 32 || (memory & 1 && memory & 6) ? WRONG_GREETING
									  : RIGHT_GREETING;
}

void stranger_meet(struct stranger *s)
{
	const char *why;

	if (s->far || s->sock < 0)
		return;
	s->far = ddps_shm_take(s->sock, &why);
	if (!s->far || !s->own)
		return;
	ddps_shm_meet(&s->in, s->far);
	ddps_shm_meet(&s->out, s->far);
}

void stranger_write(struct stranger *s, const void *octets, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)octets, n };
	bool wake;

	if (!s->own)
		return;
	(void)ddps_shm_write(&s->out, &iov, 1, &wake);
	stranger_send(s, "", wake, -1);
}

void stranger_start(struct stranger *s, bool answers, unsigned how)
{
	uint8_t frame[21] = "MPA ID Req Frame\0\1\0\0";

	if (answers)
		memcpy(frame, "MPA ID Rep Frame", 16);
	if (how & 0x80)
		frame[how & 15] ^= 1;
	stranger_write(s, frame, 20);
}

/* A Send of @len octets, whose numbers are right, or nearly. */
void stranger_segment(struct stranger *s, unsigned len, unsigned how)
{
	uint8_t f[2 + 18 + 255 + 3 + 4] = { 0 };
	struct ddps_wbuf b = ddps_wbuf_init(f, sizeof f);

	ddps_wbuf_u16(&b, (uint16_t)(18 + len));
	ddps_wbuf_u16(&b, 0x4143);
	ddps_wbuf_u32(&b, 0);
	ddps_wbuf_u32(&b, 0);
	ddps_wbuf_u32(&b, ++s->msn);
	if (how & 0x80)
		f[how & 15] ^= (uint8_t)(1 + (how >> 4 & 3));
	stranger_write(s, f, (2 + 18 + len + 3) / 4 * 4 + 4);
}

void stranger_read(struct stranger *s)
{
	static uint8_t octets[65536];
	struct iovec iov = { octets, sizeof octets };
	bool wake;

	stranger_meet(s);
	if (!s->far || !s->own)
		return;
	(void)ddps_shm_read(&s->in, &iov, 1, &wake);
	stranger_send(s, "", wake, -1);
}

void stranger_leave(struct stranger *s)
{
	kern.host = 1;
	if (s->sock >= 0)
		close(s->sock);
	if (s->listener >= 0)
		close(s->listener);
	s->sock = s->listener = -1;
}

void stranger_word(struct stranger *s, unsigned which, uint64_t value)
{
	struct ddps_shm_words *words = &s->own->words;
	uint32_t *const small[] = { &words->end, &words->reader_sleeps, &words->writer_sleeps,
				    &words->reader_woken, &words->writer_woken };

	if (which % 6 == 5)
		__atomic_store_n(&words->tail, (s->far ? s->far->words.head : 0) + value,
				 __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(small[which % 6], (uint32_t)value, __ATOMIC_SEQ_CST);
}
