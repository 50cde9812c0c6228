/* SPDX-License-Identifier: BSD-2-Clause */
/* A context's capture: each packet of its wires, both ways. */
#include "support/e2e.h"
#include "support/ip4.h"
#include <ddpsess/capture.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

struct seen {
	unsigned packets, init, abort_or_complete;
	size_t octets[2]; /* sent, received */
	bool ports;
};

static void note_captured_packet(void *user, const struct ddps_packet *p)
{
	const uint8_t *b = p->iov[0].iov_base;
	struct sockaddr_in local, peer;
	struct seen *s = user;
	size_t all = 0;

	for (int i = 0; i < p->niov; i++)
		all += p->iov[i].iov_len;
	cr_expect_geq(all, p->len);
	cr_expect_gt(p->len, 0);
	memcpy(&local, p->local, sizeof local);
	memcpy(&peer, p->peer, sizeof peer);
	cr_expect_eq(peer.sin_family, AF_INET);
	cr_expect_eq(local.sin_family, AF_INET);
	cr_expect_eq(local.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	s->packets++;
	s->octets[!p->sent] += p->len;
	s->ports = local.sin_port && peer.sin_port;
	if (p->transport != DDPS_TRANSPORT_SCTP)
		return;
	cr_expect_geq(p->iov[0].iov_len, 16);
	s->init += b[12] == 1;
	s->abort_or_complete += b[12] == 6 || b[12] == 14;
}

static void capture_session(const char *uri, struct seen *s)
{
	struct ddps_ctx_attr attr;
	struct e2e e;

	ddps_ctx_attr_init(&attr);
	cr_expect_null(attr.capture);
	attr.capture = note_captured_packet;
	attr.capture_user = s;
	e2e_open_with(&e, uri, &attr);
	e2e_connect(&e);
	cr_assert(e.a.seen & E2E_SEEN(DDPS_EV_ESTABLISHED));
	e2e_disconnect(&e, &e.a);
	e2e_close(&e);
}

Test(capture, all_that_a_context_sends_it_receives, .timeout = 60)
{
	struct seen s = { 0 };

	capture_session("tcp://127.0.0.1:0", &s);
	cr_expect_geq(s.packets, 4, "Request and Reply, at both ends");
	cr_expect_eq(s.octets[0], s.octets[1], "both ends are in this context");
	cr_expect(s.ports);
	s = (struct seen){ 0 };
	capture_session("sctp://127.0.0.1:0?encap=0", &s);
	cr_expect_eq(s.init, 2, "sent, and received");
	cr_expect_geq(s.abort_or_complete, 1);
	cr_expect(!s.ports);
}

/* ---- files ---- */

#define HEAD	   60u /* section and interface */
#define TCP_PACKET 72u /* block, IP, TCP */

/* Octets of a stream between two ports, 8 of them in two pieces. */
static void add_captured_octets(struct ddps_capture *c, uint16_t local, uint16_t peer)
{
	static char text[] = "01234567";
	struct sockaddr_in a = get_loopback(local), b = get_loopback(peer);
	const struct iovec iov[] = { { text, 3 }, { text + 3, 5 } };
	const struct ddps_packet p = { .transport = DDPS_TRANSPORT_TCP,
				       .sent = true,
				       .local = (const struct sockaddr *)&a,
				       .peer = (const struct sockaddr *)&b,
				       .iov = iov,
				       .niov = 2,
				       .len = 8 };

	ddps_capture_add(c, &p);
}

static void name_file(char *path)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
}

static size_t read_file(const char *path, uint8_t *buf, size_t size)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	cr_assert_not_null(f);
	n = fread(buf, 1, size, f);
	fclose(f);
	return n;
}

/* Sequence number of the packet that begins at @at. */
static uint32_t seq_of(const uint8_t *file, size_t at)
{
	const uint8_t *p = file + at + 28 + 20 + 4;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

Test(capture, a_file_holds_what_was_sent)
{
	char path[] = "/tmp/ddps-capture-XXXXXX";
	struct ddps_capture *c;
	uint8_t buf[1024];

	name_file(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	add_captured_octets(c, 1, 2);
	add_captured_octets(c, 1, 2);
	/* before it is closed */
	cr_expect_eq(read_file(path, buf, sizeof buf), HEAD + 2 * (TCP_PACKET + 8));
	cr_expect_arr_eq(buf, "\x0a\x0d\x0d\x0a", 4);
	cr_expect_arr_eq(buf + HEAD + TCP_PACKET - 4, "01234567", 8);
	cr_expect_eq(seq_of(buf, HEAD), 1);
	cr_expect_eq(seq_of(buf, HEAD + TCP_PACKET + 8), 9);
	cr_expect_eq(ddps_capture_close(c), 0);
	/* what it had is lost */
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	cr_expect_eq(read_file(path, buf, sizeof buf), HEAD);
	cr_expect_eq(ddps_capture_close(c), 0);
	unlink(path);
}

Test(capture, a_file_has_one_writer)
{
	char path[] = "/tmp/ddps-capture-XXXXXX";
	struct ddps_capture *c, *other = NULL;
	uint8_t buf[1024];

	name_file(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	add_captured_octets(c, 1, 2);
	cr_expect_eq(ddps_capture_open(&other, path), DDPS_E_BUSY);
	cr_expect_null(other);
	cr_expect_eq(read_file(path, buf, sizeof buf), HEAD + TCP_PACKET + 8, "it is untouched");
	cr_expect_eq(ddps_capture_close(c), 0);
	cr_assert_eq(ddps_capture_open(&other, path), 0);
	cr_expect_eq(ddps_capture_close(other), 0);
	unlink(path);
}

Test(capture, what_cannot_be_written_is_reported)
{
	struct ddps_capture *c = NULL;

	cr_expect_eq(ddps_capture_open(NULL, "/dev/null"), DDPS_E_INVAL);
	cr_expect_eq(ddps_capture_open(&c, NULL), DDPS_E_INVAL);
	cr_expect_eq(ddps_capture_open(&c, "/nowhere/file"), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOENT);
	cr_expect_null(c);
	cr_expect_eq(ddps_capture_close(NULL), 0);
	cr_expect_eq(ddps_capture_open(&c, "/dev/full"), DDPS_E_SYSTEM);
	cr_expect_eq(errno, ENOSPC);
	cr_expect_null(c);
	cr_expect_eq(access("/dev/full", F_OK), 0, "it was there before");
	cr_expect_eq(ddps_capture_error(NULL), 0);
}

/* The limit of a file's size stands for a disk's: it is met in the midst of a packet.  Its signal, which this
 * program does not ignore, would end it. */
Test(capture, a_file_that_cannot_grow_ends_with_a_whole_packet)
{
	char path[] = "/tmp/ddps-capture-XXXXXX";
	struct rlimit lim = { HEAD + 2 * (TCP_PACKET + 8) + 20, RLIM_INFINITY };
	static uint8_t buf[HEAD + 4 * (TCP_PACKET + 8)];
	struct ddps_capture *c = NULL;

	name_file(path);
	unlink(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(ddps_capture_error(c), 0, "%d", i);
		add_captured_octets(c, 1, 4);
	}
	cr_expect_eq(ddps_capture_error(c), EFBIG);
	add_captured_octets(c, 1, 4);
	cr_expect_eq(ddps_capture_close(c), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EFBIG);
	cr_expect_eq(read_file(path, buf, sizeof buf), HEAD + 2 * (TCP_PACKET + 8));
	unlink(path);
	lim.rlim_cur = 10;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	cr_expect_eq(ddps_capture_open(&c, path), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EFBIG);
	cr_expect(access(path, F_OK), "a file that cannot begin is removed");
	lim.rlim_cur = RLIM_INFINITY;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
}

Test(capture, connections_that_are_numbered_are_bounded)
{
	char path[] = "/tmp/ddps-capture-XXXXXX";
	static uint8_t buf[HEAD + 1100 * (TCP_PACKET + 8)];
	struct ddps_capture *c;
	size_t last;

	name_file(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	for (uint16_t port = 1; port <= 1025; port++)
		add_captured_octets(c, port, 9);
	add_captured_octets(c, 1025, 9);
	add_captured_octets(c, 1, 9);
	cr_expect_eq(ddps_capture_close(c), 0);
	last = read_file(path, buf, sizeof buf) - (TCP_PACKET + 8);
	cr_expect_eq(seq_of(buf, last - (TCP_PACKET + 8)), 9, "the newest goes on");
	cr_expect_eq(seq_of(buf, last), 1, "the oldest starts again");
	unlink(path);
}

/* ---- any addresses, any pieces ---- */

static struct sockaddr_in6 at6(const char *ip, uint16_t port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	cr_assert_eq(inet_pton(AF_INET6, ip, &sa.sin6_addr), 1);
	return sa;
}

static void add_between(struct ddps_capture *c, const void *local, const void *peer,
			const struct iovec *iov, int niov, size_t len)
{
	const struct ddps_packet p = { .transport = DDPS_TRANSPORT_TCP,
				       .local = local,
				       .peer = peer,
				       .iov = iov,
				       .niov = niov,
				       .len = len };

	ddps_capture_add(c, &p);
}

/* Version and addresses of the IP header of the packet that begins at @at. */
static void check_ip(const uint8_t *file, size_t at, const void *from, const void *to, size_t len)
{
	const uint8_t *ip = file + at + 28;

	cr_expect_eq(ip[0] >> 4, len == 4 ? 4 : 6);
	cr_expect_arr_eq(ip + (len == 4 ? 12 : 8), from, len);
	cr_expect_arr_eq(ip + (len == 4 ? 12 : 8) + len, to, len);
}

Test(capture, each_family_of_addresses)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct sockaddr_in6 a = at6("2001:db8::1", 1), b = at6("2001:db8::2", 2);
	struct sockaddr_in6 m = at6("::ffff:127.0.0.1", 1), other = at6("2001:db8::3", 2);
	char path[] = "/tmp/ddps-capture-XXXXXX", text[] = "01234567";
	const struct iovec iov = { text, sizeof text - 1 };
	struct sockaddr_in v4 = get_loopback(2);
	struct ddps_capture *c;
	uint8_t buf[1024];
	size_t n = HEAD;

	name_file(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	add_between(c, &a, &b, &iov, 1, 8);
	add_between(c, &m, &v4, &iov, 1, 8);	 /* mapped: IPv4 */
	add_between(c, &nobody, &b, &iov, 1, 8); /* not known */
	add_between(c, &a, &other, &iov, 1, 8);	 /* the same ports, another host */
	cr_expect_eq(ddps_capture_close(c), 0);
	cr_expect_eq(read_file(path, buf, sizeof buf), HEAD + 4 * (TCP_PACKET + 8) + 3 * 20);
	check_ip(buf, n, &b.sin6_addr, &a.sin6_addr, 16);
	n += TCP_PACKET + 8 + 20;
	check_ip(buf, n, &v4.sin_addr, &v4.sin_addr, 4);
	cr_expect_eq(seq_of(buf, n), 1);
	n += TCP_PACKET + 8;
	check_ip(buf, n, &b.sin6_addr, &in6addr_any, 16);
	n += TCP_PACKET + 8 + 20;
	check_ip(buf, n, &other.sin6_addr, &a.sin6_addr, 16);
	cr_expect_eq(seq_of(buf, n + 20), 1, "a stream of its own");
	unlink(path);
}

#define MANY 70 /* pieces: more than one call writes */

Test(capture, a_packet_of_many_pieces)
{
	char path[] = "/tmp/ddps-capture-XXXXXX", text[MANY + 1];
	static uint8_t buf[1024];
	struct sockaddr_in a = get_loopback(1), b = get_loopback(2);
	struct iovec iov[MANY + 2];
	struct ddps_capture *c;
	size_t len;

	for (int i = 0; i < MANY; i++) {
		text[i] = (char)('0' + i);
		iov[i] = (struct iovec){ text + i, 1 };
	}
	iov[MANY] = iov[MANY + 1] = (struct iovec){ buf, sizeof buf }; /* more than @len */
	name_file(path);
	cr_assert_eq(ddps_capture_open(&c, path), 0);
	add_between(c, &a, &b, iov, MANY + 2, MANY);
	iov[3].iov_len = 0; /* a piece with nothing in it */
	add_between(c, &a, &b, iov, MANY, 63);
	cr_expect_eq(ddps_capture_close(c), 0);
	len = read_file(path, buf, sizeof buf);
	cr_expect_eq(len, HEAD + TCP_PACKET + 72 + TCP_PACKET + 64, "padded to four");
	cr_expect_arr_eq(buf + HEAD + 68, text, MANY);
	cr_expect_arr_eq(buf + HEAD + TCP_PACKET + 72 + 68, "012456", 6);
	unlink(path);
}

/* As after closefrom: the number is a file of the program by now. */
Test(capture, a_file_that_the_program_has_closed)
{
	char path[] = "/tmp/ddps-capture-XXXXXX", own[] = "/tmp/ddps-capture-XXXXXX";
	struct ddps_capture *c[2];
	int fd[2];

	name_file(path);
	for (int i = 0; i < 2; i++) {
		cr_assert_geq(fd[i] = dup(0), 0);
		close(fd[i]);
		cr_assert_eq(ddps_capture_open(&c[i], path), 0);
		add_captured_octets(c[i], 1, 2);
		if (i)
			cr_assert_eq(close(fd[i]), 0);
		else
			cr_assert_eq(dup2(mkstemp(own), fd[i]), fd[i]);
		cr_expect_eq(ddps_capture_error(c[i]), 0);
		add_captured_octets(c[i], 1, 2);
		cr_expect_eq(ddps_capture_error(c[i]), EBADF);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ddps_capture_close(c[i]), DDPS_E_SYSTEM);
		cr_expect_eq(errno, EBADF);
	}
	cr_expect_eq(lseek(fd[0], 0, SEEK_END), 0, "nothing was written there");
	unlink(path);
	unlink(own);
}

/* One that must not shrink: what it has is not lost. */
Test(capture, a_file_that_cannot_be_emptied)
{
	int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
	struct ddps_capture *c = NULL;
	char path[64];

	cr_assert_eq(write(fd, "x", 1), 1);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	cr_expect_eq(ddps_capture_open(&c, path), DDPS_E_SYSTEM);
	cr_expect_eq(errno, EPERM);
	cr_expect_null(c);
	cr_expect_eq(lseek(fd, 0, SEEK_END), 1);
	close(fd);
}
