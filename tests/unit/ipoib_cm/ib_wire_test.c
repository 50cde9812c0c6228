/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a port whose packets are UDP's: when calls of the system fail, and packets of anybody. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "ipoib_cm/ports/port_ib_wire.h"
#include "unit/sys_fixture.h"
#include "support/icrc.h"

#define PORT  7198
#define UD_OP (DDPS_IB_UD | DDPS_IB_SEND_ONLY)
#define PLAIN 64 /* packets after which buffers are cut for a node */

static struct ib_wire w;
static unsigned n_rx;
static uint16_t rx_slid, rx_mlid;
static size_t rx_len;

static void on_rx(void *user, uint16_t slid, uint16_t mlid, const struct ddps_ib_pkt *p,
		  uint64_t now)
{
	(void)user, (void)now;
	n_rx++;
	rx_slid = slid;
	rx_mlid = mlid;
	rx_len = p->len;
}

static int try_open_ib_wire(uint32_t *where)
{
	memset(&w, 0, sizeof(w));
	w.udp_port = PORT;
	w.rx = on_rx;
	w.broadcast = *where | 0xff; /* its own: what is sent to 127.255.255.255 all tests hear */
	w.ip = *where;
	return ddps_ib_wire_open(&w, where);
}

/* Addresses that no other test has: by the process, and where they are taken, the next. */
static uint32_t make_ib_wire_address(unsigned i)
{
	unsigned at = (unsigned)getpid() + i * 7919;

	return 127u << 24 | (100 + at % 100) << 16 | (at / 100 % 256) << 8 | 3;
}

static void init(void)
{
	uint32_t where = 0;
	int err = -1;

	for (unsigned i = 0; i < 50 && err; i++) {
		where = make_ib_wire_address(i);
		err = try_open_ib_wire(&where);
		if (err)
			ddps_ib_wire_close(&w);
	}
	cr_assert_eq(err, 0);
}

static void fini(void)
{
	sys_fail(NULL, 0, 0, 0);
	ddps_ib_wire_close(&w);
}

/* The lowest descriptor that is free: the same if none was lost. */
static int free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* Whatever fails while they are opened, nothing is left, and the address is that which it was about. */
Test(ib_wire, sockets_that_cannot_be_had)
{
	static const char *const call[] = { "socket", "bind", "setsockopt" };
	const int fd = free_fd();

	for (unsigned i = 0; i < 3; i++) {
		unsigned n = 0, failed = 0;

		for (;; n++) {
			uint32_t where = make_ib_wire_address(0);
			int err;

			cr_assert_lt(n, 30);
			sys_fail(call[i], n, 1, EMFILE);
			err = try_open_ib_wire(&where);
			if (err) {
				cr_expect_eq(errno, EMFILE, "%s %u", call[i], n);
				cr_expect_eq(where, w.unicast < 0 ? w.ip : w.broadcast);
				failed++;
			}
			ddps_ib_wire_close(&w);
			cr_expect_eq(free_fd(), fd, "%s %u", call[i], n);
			if (!sys_failed())
				break;
		}
		/* buffers may be smaller, and packets come one by one */
		cr_expect_eq(failed, i == 2 ? 3 : 2, "%s", call[i]);
	}
}

/* ---- one by one, and in buffers ---- */

static uint8_t data[DDPS_IB_MTU_MAX];

static struct ddps_ib_pkt make_ib_wire_packet(size_t len)
{
	return (struct ddps_ib_pkt){ .opcode = UD_OP,
				     .pkey = 0xffff,
				     .qpn = 5,
				     .qkey = 7,
				     .src_qpn = 6,
				     .data = data,
				     .len = len };
}

static bool stays;

static bool put_ib_wire(uint16_t lid, size_t len)
{
	struct ddps_ib_pkt p = make_ib_wire_packet(len);

	p.stays = stays;
	return ddps_ib_wire_send(&w, lid, 0, &p);
}

static int node(uint8_t lid, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl((w.ip & ~0xffu) | lid),
				 .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1;

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* How many packets have come to @fd; each has the ICRC of its identification, from 0 on if @counted. */
static unsigned came(int fd, uint8_t lid, bool counted)
{
	struct ddps_ib_udp_hdr h = {
		.src = w.ip, .dst = (w.ip & ~0xffu) | lid, .sport = PORT, .dport = PORT
	};
	uint8_t b[65536];
	unsigned n = 0;
	ssize_t len;

	for (; (len = recv(fd, b, sizeof(b), 0)) > 0; n++) {
		h.id = counted ? (uint16_t)n : 0;
		cr_expect_eq(ddps_ib_icrc_check(&h, b, (size_t)len), DDPS_IB_ICRC_EXACT, "%u", n);
	}
	return n;
}

Test(ib_wire, no_room_is_for_later, .init = init, .fini = fini)
{
	static const int err[] = { EAGAIN, EWOULDBLOCK, ENOBUFS };
	int fd = node(9, PORT);

	for (unsigned i = 0; i < 3; i++) {
		cr_expect(put_ib_wire(9, 100));
		cr_expect(put_ib_wire(9, 100));
		sys_fail("sendmmsg", 0, 1, err[i]);
		cr_expect_not(ddps_ib_wire_flush(&w));
		cr_expect(w.full);
		w.full = false;
		cr_expect_eq(came(fd, 9, false), 0);
		cr_expect(ddps_ib_wire_flush(&w), "what waited goes");
		cr_expect_eq(came(fd, 9, false), 2);
		cr_expect_not(w.full);
	}
	cr_expect_eq(w.stats.wire_tx, 6);
	cr_expect_eq(w.stats.wire_tx_failed, 0);
	close(fd);
}

Test(ib_wire, an_error_of_before_is_no_end, .init = init, .fini = fini)
{
	int fd = node(9, PORT);

	for (unsigned bad = 1; bad <= 3; bad++) {
		cr_expect(put_ib_wire(9, 100));
		cr_expect(put_ib_wire(9, 100));
		sys_fail("sendmmsg", 0, bad, ECONNREFUSED);
		cr_expect(ddps_ib_wire_flush(&w));
		cr_expect_eq(came(fd, 9, false), bad < 3 ? 2 : 1, "%u errors", bad);
		cr_expect_eq(w.stats.wire_tx_failed, bad == 3, "the third time it is lost");
	}
	close(fd);
}

Test(ib_wire, as_many_as_leave_together, .init = init, .fini = fini)
{
	int fd = node(9, PORT);

	for (unsigned i = 0; i < IB_WIRE_CUTS; i++)
		cr_expect(put_ib_wire(9, 16));
	cr_expect_eq(came(fd, 9, false), 0, "they wait");
	cr_expect(put_ib_wire(9, 16));
	cr_expect_eq(came(fd, 9, false), IB_WIRE_CUTS);
	cr_expect(ddps_ib_wire_flush(&w));
	cr_expect_eq(came(fd, 9, false), 1);
	for (unsigned i = 0; i < IB_WIRE_OUT / 4200; i++)
		cr_expect(put_ib_wire(9, DDPS_IB_MTU_MAX));
	cr_expect_eq(came(fd, 9, false), 0);
	cr_expect(put_ib_wire(9, DDPS_IB_MTU_MAX));
	cr_expect_eq(came(fd, 9, false), IB_WIRE_OUT / 4200, "no more octets fit");
	for (unsigned i = 1; i < IB_WIRE_CUTS; i++)
		cr_expect(put_ib_wire(9, 16));
	sys_fail("sendmmsg", 0, 1, EAGAIN);
	cr_expect_not(put_ib_wire(9, 16), "there is no room");
	cr_expect(w.full);
	cr_expect(put_ib_wire(9, 16));
	cr_expect(ddps_ib_wire_flush(&w));
	cr_expect_eq(came(fd, 9, false), IB_WIRE_CUTS + 1);
	close(fd);
}

/* For a node that does not look at identifications: to it alone, of one length but for the last. */
Test(ib_wire, what_goes_in_one_buffer, .init = init, .fini = fini)
{
	int nine = node(9, PORT), eight = node(8, PORT);

	w.plain[9] = w.plain[8] = PLAIN;
	cr_expect(put_ib_wire(9, 100));
	cr_expect(put_ib_wire(9, 100));
	cr_expect(put_ib_wire(9, 50)); /* shorter: the last */
	cr_expect_eq(came(nine, 9, true), 0);
	cr_expect(put_ib_wire(9, 50));
	cr_expect_eq(came(nine, 9, true), 3);
	cr_expect(put_ib_wire(8, 50)); /* another node */
	cr_expect_eq(came(nine, 9, true), 1);
	cr_expect(put_ib_wire(8, 100)); /* longer */
	cr_expect_eq(came(eight, 8, true), 1);
	cr_expect(put_ib_wire(7, 100)); /* one that may look */
	cr_expect_eq(came(eight, 8, true), 1);
	cr_expect(ddps_ib_wire_flush(&w));
	cr_expect_eq(w.stats.wire_tx, 7);
	close(nine);
	close(eight);
}

/* A system that cannot cut is asked once: what was meant to be cut goes one by one, with other ICRCs. */
Test(ib_wire, a_system_that_does_not_cut, .init = init, .fini = fini)
{
	static const int err[] = { EINVAL, EIO, EOPNOTSUPP, ENOPROTOOPT };
	int fd = node(9, PORT);

	for (unsigned i = 0; i < 8; i++) {
		stays = i / 4;
		w.no_cut = false;
		w.plain[9] = PLAIN;
		for (unsigned k = 0; k < 3; k++)
			cr_expect(put_ib_wire(9, 101));
		sys_fail("sendmsg", 0, 1, err[i % 4]);
		cr_expect(ddps_ib_wire_flush(&w));
		cr_expect(w.no_cut);
		cr_expect_eq(came(fd, 9, false), 3);
		cr_expect(put_ib_wire(9, 100));
		cr_expect(put_ib_wire(9, 100));
		cr_expect(ddps_ib_wire_flush(&w));
		cr_expect_eq(came(fd, 9, false), 2);
	}
	cr_expect_eq(w.stats.wire_tx_failed, 0);
	close(fd);
}

Test(ib_wire, a_buffer_that_is_not_sent_is_lost_as_a_whole, .init = init, .fini = fini)
{
	int fd = node(9, PORT);

	w.plain[9] = PLAIN;
	for (unsigned bad = 2; bad <= 3; bad++) {
		for (unsigned k = 0; k < 3; k++)
			cr_expect(put_ib_wire(9, 100));
		sys_fail("sendmsg", 0, bad, ENETUNREACH);
		cr_expect(ddps_ib_wire_flush(&w));
		cr_expect_eq(came(fd, 9, true), bad == 2 ? 3 : 0);
	}
	cr_expect_eq(w.stats.wire_tx, 3);
	cr_expect_eq(w.stats.wire_tx_failed, 3);
	cr_expect_not(w.no_cut);
	close(fd);
}

/* A payload that stays is sent from where it is, or from a copy made when it goes. */
Test(ib_wire, what_goes_is_copied_in_time, .init = init, .fini = fini)
{
	int fd = node(9, PORT);

	stays = true;
	for (unsigned cut = 0; cut < 2; cut++) {
		w.plain[9] = cut ? PLAIN : 0;
		for (unsigned i = 0; i < IB_WIRE_OUT / 4200; i++)
			cr_expect(put_ib_wire(9, DDPS_IB_MTU_MAX - 3));
		cr_expect_lt(w.out.used, 1000, "no payload");
		ddps_ib_wire_gone(&w, data + 1, sizeof(data) - 1);
		cr_expect_lt(w.out.used, 1000, "that was not theirs");
		ddps_ib_wire_gone(&w, data, sizeof(data));
		ddps_ib_wire_gone(&w, data, sizeof(data));
		memset(data, (int)cut + 1, sizeof(data));
		cr_expect(ddps_ib_wire_flush(&w));
		cr_expect_eq(came(fd, 9, cut), IB_WIRE_OUT / 4200);
	}
	close(fd);
}

/* ---- groups ---- */

static bool to_group(uint16_t mlid)
{
	struct ddps_ib_pkt p = make_ib_wire_packet(100);

	return ddps_ib_wire_send(&w, mlid, 3, &p);
}

/* Each group has a socket, whose port is the MLID. */
Test(ib_wire, groups_have_sockets, .init = init, .fini = fini)
{
	const int fd = free_fd();

	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc101), 0);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc101), 0);
	cr_expect(to_group(0xc101));
	cr_expect(to_group(0xc101));
	cr_expect_neq(free_fd(), fd);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc102), 0);
	cr_expect(to_group(0xc102));
	cr_expect_eq(w.group[3].mlid, 0xc102);
	cr_expect_eq(w.group[3].fd, fd, "in place of the other one");
	cr_expect_eq(w.stats.wire_tx, 3);
	while (n_rx < 3)
		(void)ddps_ib_wire_read(&w, 0);
	cr_expect_eq(rx_mlid, 0xc102, "its own comes back, and says which group");
	cr_expect_eq(rx_slid, 3);
	cr_expect_eq(rx_len, 100);
	sys_fail("sendto", 0, 1, ENOBUFS);
	cr_expect_not(to_group(0xc102));
	sys_fail("sendto", 0, 1, EAGAIN);
	cr_expect_not(to_group(0xc102));
	cr_expect_eq(w.stats.wire_tx_failed, 0);
	sys_fail("sendto", 0, 1, ENETUNREACH);
	cr_expect(to_group(0xc102), "lost: nobody waits for it");
	cr_expect_eq(w.stats.wire_tx_failed, 1);
	sys_fail("socket", 0, 1, EMFILE);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc103), -1);
	cr_expect_eq(errno, EMFILE);
	cr_expect(to_group(0xc103));
	cr_expect_eq(w.stats.wire_tx_failed, 2);
	cr_expect_eq(w.group[3].mlid, 0);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc103), 0);
	cr_expect(to_group(0xc103), "and now there is one");
	cr_expect_eq(w.stats.wire_tx, 4);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0), 0);
	cr_expect_eq(free_fd(), fd, "given back");
}

/* Two groups with one MLID: the port is there once, and stays for the one that is left. */
Test(ib_wire, contact_32_groups_that_share_an_mlid, .init = init, .fini = fini)
{
	cr_expect_eq(ddps_ib_wire_hold(&w, 2, 0xc104), 0);
	cr_expect_eq(ddps_ib_wire_hold(&w, 3, 0xc104), 0);
	cr_expect_eq(ddps_ib_wire_hold(&w, 2, 0), 0);
	cr_expect(to_group(0xc104));
	cr_expect_eq(w.stats.wire_tx, 1);
	cr_expect_eq(w.stats.wire_tx_failed, 0);
}

/* ---- in ---- */

/* @len octets of @b to the port, or to all, until they have been looked at. */
static void bring_wire_octets(int fd, uint32_t to, const uint8_t *b, size_t len)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(to),
				 .sin_port = htons(PORT) };
	const uint64_t n = w.stats.wire_rx;

	cr_assert_eq(sendto(fd, b, len, 0, (struct sockaddr *)&a, sizeof(a)), (ssize_t)len);
	while (w.stats.wire_rx == n)
		(void)ddps_ib_wire_read(&w, 0);
}

static size_t make_ib_wire(uint8_t *b, size_t len, const struct ddps_ib_udp_hdr *h)
{
	struct ddps_ib_pkt p = make_ib_wire_packet(len);
	size_t head = ddps_ib_pkt_encode(b, &p);

	memset(b + head, 0, len + p.pad);
	icrc_put(h, b, head + len + p.pad);
	return head + len + p.pad + DDPS_IB_ICRC_LEN;
}

Test(ib_wire, packets_of_anybody, .init = init, .fini = fini)
{
	static uint8_t b[8192];
	struct ddps_ib_udp_hdr h = { .dst = w.ip, .sport = PORT, .dport = PORT };
	int nobody = node(0, PORT), nine = node(9, PORT);
	size_t len;

	h.src = w.ip & ~0xffu;
	len = make_ib_wire(b, 100, &h);
	bring_wire_octets(nobody, w.ip, b, len);
	cr_expect_eq(w.stats.wire_stranger, 1, "LID 0");
	h.src |= 9;
	len = make_ib_wire(b, 100, &h);
	bring_wire_octets(nine, w.ip, b, len);
	cr_expect_eq(n_rx, 1);
	cr_expect_eq(rx_slid, 9);
	cr_expect_eq(rx_mlid, 0);
	bring_wire_octets(nine, w.ip, b, 0);
	cr_expect_eq(w.stats.wire_bad, 1, "an empty one");
	len = make_ib_wire(b, DDPS_IB_MTU_MAX, &h);
	bring_wire_octets(nine, w.ip, b, len);
	cr_expect_eq(n_rx, 2);
	cr_expect_eq(rx_len, DDPS_IB_MTU_MAX);
	len = make_ib_wire(b, DDPS_IB_MTU_MAX + 400, &h);
	bring_wire_octets(nine, w.ip, b, len);
	cr_expect_eq(w.stats.wire_bad, 2, "longer than any");
	cr_expect_eq(n_rx, 2);
	n_rx = 0;
	w.stats.wire_bad = 0;
	h.dst = w.broadcast;
	len = make_ib_wire(b, 100, &h);
	bring_wire_octets(nine, w.broadcast, b, len);
	cr_expect_eq(w.stats.wire_bad, 1, "to all, from no group's port");
	cr_expect_eq(n_rx, 0);
	close(nobody);
	close(nine);
}

/* What else the system says of a packet is passed over. */
Test(ib_wire, other_news_of_a_packet, .init = init, .fini = fini)
{
	struct ddps_ib_udp_hdr h = { .dst = w.ip, .sport = PORT, .dport = PORT };
	int nine = node(9, PORT);
	const int on = 1;
	uint8_t b[200];
	size_t len;

	cr_assert_eq(setsockopt(w.unicast, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on)), 0);
	h.src = (w.ip & ~0xffu) | 9;
	len = make_ib_wire(b, 100, &h);
	bring_wire_octets(nine, w.ip, b, len);
	cr_expect_eq(n_rx, 1);
	close(nine);
}

/* An error about an earlier packet is no end: there may be more behind it. */
Test(ib_wire, errors_of_reading, .init = init, .fini = fini)
{
	cr_expect_not(ddps_ib_wire_read(&w, 0));
	sys_fail("recvmmsg", 0, 1, ECONNREFUSED);
	cr_expect(ddps_ib_wire_read(&w, 0));
	sys_fail("recvmmsg", 1, 1, ECONNREFUSED);
	cr_expect(ddps_ib_wire_read(&w, 0));
	sys_fail("recvmmsg", 0, 2, EAGAIN);
	cr_expect_not(ddps_ib_wire_read(&w, 0));
	cr_expect_eq(sys_failed(), 2);
}
