/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sockets below the native SCTP rarely say: cut and nameless datagrams, each ICMP error, no room. */
#include "sctp/sctp_in.h"
#include "sctp_ddp/backend/native/sd_native.h"
#include "sd_hand_fixture.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "unit/sys_fixture.h"
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/epoll.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

TestSuite(sd_native_rare, .timeout = 60);

static struct ddps_sctp_stats get_sd_native_rare_counted(void)
{
	struct ddps_sctp_stats st;

	ddps_sctp_stats(srv.ep->ne->e, &st);
	return st;
}

static void make_sock_readable(uint32_t events)
{
	ddps_sn_readable(srv.ep->sock, events);
}

/* ---- addresses ---- */

Test(sd_native_rare, an_address_of_a_link_has_its_interface)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_scope_id = 3 }, out;
	struct sockaddr_storage ss = { 0 };
	struct ddps_sctp_addr a;

	inet_pton(AF_INET6, "fe80::7", &in.sin6_addr);
	memcpy(&ss, &in, sizeof in);
	a = ddps_sn_addr(&ss);
	cr_expect_eq(a.family, 6);
	cr_expect_eq(a.scope, 3);
	cr_expect_eq(ddps_sn_sockaddr(&a, 9, AF_INET6, &ss), sizeof out);
	memcpy(&out, &ss, sizeof out);
	cr_expect_eq(out.sin6_scope_id, 3);
	cr_expect_arr_eq(&out.sin6_addr, &in.sin6_addr, sizeof in.sin6_addr);

	inet_pton(AF_INET6, "2001:db8::7", &in.sin6_addr);
	memcpy(&ss, &in, sizeof in);
	cr_expect_eq(ddps_sn_addr(&ss).scope, 0, "it is the same on each");
	ss.ss_family = AF_UNIX;
	cr_expect_eq(ddps_sn_addr(&ss).family, 0);
}

/* What a system has behind an address is no part of it. */
Test(sd_native_rare, an_address_is_its_octets_alone)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_scope_id = 0x07070707 };
	struct sockaddr_storage x = { 0 }, y;

	inet_pton(AF_INET, "192.0.2.7", &a4.sin_addr);
	memset(a4.sin_zero, 7, sizeof a4.sin_zero);
	inet_pton(AF_INET6, "::ffff:192.0.2.7", &a6.sin6_addr);
	memcpy(&x, &a4, sizeof a4);
	memcpy(&y, &a6, sizeof a6);
	cr_expect_eq(ddps_sn_addr(&x).ip[4], 0);
	cr_expect_eq(ddps_sn_addr(&y).ip[4], 0);
	cr_expect(ddps_sn_same_addr(&x, &y));
}

Test(sd_native_rare, nothing_is_left_of_what_was_there_before)
{
	const struct ddps_sctp_addr a = { .family = 4, .ip = { 192, 0, 2, 7 } };
	static const int families[] = { AF_INET, AF_INET6 };
	struct sockaddr_storage ss;
	socklen_t len;

	for (int i = 0; i < 2; i++) {
		memset(&ss, 0xa7, sizeof ss);
		len = ddps_sn_sockaddr(&a, 9, families[i], &ss);
		for (size_t k = len; k < sizeof ss; k++)
			cr_assert_eq(((uint8_t *)&ss)[k], 0, "%zu", k);
	}
}

/* ---- datagrams ---- */

enum { WHOLE_ONE, CUT, NAMELESS, HEADLESS };

static int spoilt; /* how each datagram is */

static int spoil_sd_native_rare(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	int got = sys_recvmmsg(fd, m, n, flags);

	for (int i = 0; i < got; i++) {
		if (spoilt == CUT)
			m[i].msg_hdr.msg_flags |= MSG_TRUNC;
		if (spoilt == HEADLESS)
			*(uint8_t *)m[i].msg_hdr.msg_iov->iov_base = 0;
		if (spoilt == NAMELESS)
			((struct sockaddr_in *)m[i].msg_hdr.msg_name)->sin_port = 0;
	}
	return got;
}

/* How many packets the engine was given of one datagram of @len octets. */
static unsigned given(struct wire *x, size_t len, int how)
{
	static const uint8_t nothing[64];
	const uint64_t before = get_sd_native_rare_counted().packets_in;

	spoilt = how;
	sys_instead.recvmmsg = spoil_sd_native_rare;
	cr_assert_eq(send(x->fd, nothing, len, 0), (ssize_t)len);
	make_sock_readable(EPOLLIN);
	sys_instead.recvmmsg = NULL;
	return (unsigned)(get_sd_native_rare_counted().packets_in - before);
}

Test(sd_native_rare, datagrams_without_a_packet_in_them)
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	wire_init(x, 4000);
	cr_expect_eq(given(x, 16, WHOLE_ONE), 1);
	cr_expect_eq(given(x, 15, WHOLE_ONE), 0, "no chunk fits");
	cr_expect_eq(given(x, 64, CUT), 0, "it was longer");
	cr_expect_eq(given(x, 64, NAMELESS), 0, "nobody can answer port 0");
	cr_expect_eq(given(x, 64, WHOLE_ONE), 1);
	stop_sd_hand(x);
}

static unsigned batch;

static int count_batch(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	batch = n;
	for (unsigned i = 0; i < n; i++) {
		cr_expect_eq(m[i].msg_hdr.msg_iovlen, 1);
		cr_expect_eq(m[i].msg_hdr.msg_iov->iov_base, sn.env.scratch + i * DDPS_SN_SLOT_LEN);
		cr_expect_eq(m[i].msg_hdr.msg_iov->iov_len, DDPS_SN_SLOT_LEN);
		cr_expect_eq(m[i].msg_len, 0);
	}
	return sys_recvmmsg(fd, m, n, flags);
}

/* Small ones are read as many together as there is room for. */
Test(sd_native_rare, a_batch_fills_the_scratch)
{
	start_sd_hand();
	srv.ep->sock->heavy = 0; /* as after many small ones */
	sys_instead.recvmmsg = count_batch;
	make_sock_readable(EPOLLIN);
	sys_instead.recvmmsg = NULL;
	cr_expect_eq(batch, DDPS_SN_BATCH);
	stop_sd_hand(NULL);
}

static int cut_into_octets(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	int got = sys_recvmmsg(fd, m, n, flags), one = 1;

	for (int i = 0; i < got; i++) {
		struct cmsghdr *c;

		m[i].msg_hdr.msg_controllen = CMSG_SPACE(sizeof one);
		c = CMSG_FIRSTHDR(&m[i].msg_hdr);
		*c = (struct cmsghdr){ .cmsg_level = IPPROTO_UDP,
				       .cmsg_type = UDP_GRO,
				       .cmsg_len = CMSG_LEN(sizeof one) };
		memcpy(CMSG_DATA(c), &one, sizeof one);
	}
	return got;
}

/* A kernel that puts datagrams together does so with the shortest also: they are no packet. */
Test(sd_native_rare, datagrams_of_one_octet_that_came_together)
{
	struct wire *x = malloc(sizeof *x);
	static const uint8_t nothing[64];
	uint64_t before;

	start_sd_hand();
	wire_init(x, 4000);
	before = get_sd_native_rare_counted().packets_in;
	sys_instead.recvmmsg = cut_into_octets;
	cr_assert_eq(send(x->fd, nothing, sizeof nothing, 0), (ssize_t)sizeof nothing);
	make_sock_readable(EPOLLIN);
	sys_instead.recvmmsg = NULL;
	cr_expect_eq(get_sd_native_rare_counted().packets_in - before, sizeof nothing);
	stop_sd_hand(x);
}

/* What this host's own sockets are sent directly on IP, to the listener's port. */
static unsigned given_on_ip(int fd, uint16_t port, int how)
{
	uint8_t packet[32] = { 0, 0, (uint8_t)(port >> 8), (uint8_t)port };
	const uint64_t before = get_sd_native_rare_counted().packets_in;
	struct sockaddr_storage to;
	socklen_t len = get_sd_backend_loopback(&to, AF_INET, 0);

	spoilt = how;
	sys_instead.recvmmsg = spoil_sd_native_rare;
	cr_assert_eq(sendto(fd, packet, sizeof packet, 0, (struct sockaddr *)&to, len),
		     (ssize_t)sizeof packet);
	make_sock_readable(EPOLLIN);
	sys_instead.recvmmsg = NULL;
	return (unsigned)(get_sd_native_rare_counted().packets_in - before);
}

Test(sd_native_rare, packets_of_ip_without_its_header)
{
	uint16_t port;
	int fd;

	if (geteuid())
		cr_skip_test("raw sockets need the privilege");
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, 0, DDPS_URI_ENCAP_OFF), 0);
	port = srv.ep->port;
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 132);
	cr_assert_geq(fd, 0);
	cr_expect_eq(given_on_ip(fd, port, WHOLE_ONE), 1);
	cr_expect_eq(given_on_ip(fd, port, HEADLESS), 0);
	cr_expect_eq(given_on_ip(fd, port, CUT), 0);
	cr_expect_eq(given_on_ip(fd, (uint16_t)(port ^ 1), WHOLE_ONE), 0, "nobody's");
	close(fd);
	stop_sd_hand(NULL);
}

/* A read that was interrupted is no ICMP error. */
Test(sd_native_rare, a_read_that_is_interrupted)
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	wire_init(x, 4000);
	sys_fail("recvmmsg", 0, 1, EINTR);
	cr_expect_eq(given(x, 16, WHOLE_ONE), 0);
	cr_expect_eq(sys_failed(), 1);
	cr_expect_not(srv.ep->sock->errors);
	make_sock_readable(EPOLLIN);
	cr_expect_eq(get_sd_native_rare_counted().packets_in, 1, "it is still there");
	stop_sd_hand(x);
}

/* ---- ICMP ---- */

static struct sock_extended_err icmp;
static struct wire *about;    /* whose packet it was */
static unsigned errors, left; /* asked for; there are still so many */
static bool mute;	      /* they have no control message */

/* One of several that are there together. */
struct one_error {
	uint8_t code;
	bool nameless, unquoted; /* nobody says to whom the packet was; which it was */
};
static const struct one_error *mixed; /* NULL: all are alike */

/* The socket's queue of errors. */
static ssize_t give_queued_error(int fd, struct msghdr *m, int flags)
{
	struct ddps_wbuf w = ddps_wbuf_init(m->msg_iov->iov_base, m->msg_iov->iov_len);
	socklen_t len = m->msg_namelen;
	struct one_error o = { 0 };
	struct cmsghdr *c;

	(void)fd;
	cr_assert(flags & MSG_ERRQUEUE);
	errors++;
	if (!left) {
		errno = EAGAIN;
		return -1;
	}
	left--;
	if (mixed) {
		o = *mixed++;
		icmp.ee_code = o.code;
	}
	ddps_wbuf_u16(&w, about->dport);
	ddps_wbuf_u16(&w, about->sport);
	ddps_wbuf_u32(&w, about->my_tag);
	if (!o.nameless)
		cr_assert_eq(getsockname(about->fd, m->msg_name, &len), 0);
	m->msg_namelen = o.nameless ? 0 : len;
	m->msg_controllen = mute ? 0 : CMSG_SPACE(sizeof icmp);
	if (!mute) {
		c = CMSG_FIRSTHDR(m);
		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof icmp),
				       .cmsg_level = IPPROTO_IP,
				       .cmsg_type = IP_RECVERR };
		memcpy(CMSG_DATA(c), &icmp, sizeof icmp);
	}
	return o.unquoted ? 0 : 8;
}

#define V4 SO_EE_ORIGIN_ICMP
#define V6 SO_EE_ORIGIN_ICMP6

enum fate { NOTHING, IGNORED, NARROWER, GONE };

static const struct icmp_row {
	uint8_t origin, type, code;
	enum fate fate;
} icmp_rows[] = {
	{ V4, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, NARROWER },
	{ V4, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, GONE },
	{ V4, ICMP_DEST_UNREACH, ICMP_PROT_UNREACH, GONE },
	{ V4, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH, IGNORED },
	{ V4, ICMP_TIME_EXCEEDED, ICMP_FRAG_NEEDED, NOTHING },
	{ V4, ICMP_TIME_EXCEEDED, ICMP_PORT_UNREACH, NOTHING },
	{ V4, ICMP_TIME_EXCEEDED, ICMP_PROT_UNREACH, NOTHING },
	{ V6, ICMP6_PACKET_TOO_BIG, 0, NARROWER },
	{ V6, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_NOPORT, GONE },
	{ V6, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_NEXTHEADER, GONE },
	{ V6, ICMP6_DST_UNREACH, ICMP6_DST_UNREACH_ADDR, IGNORED },
	{ V6, ICMP6_PARAM_PROB, ICMP6_PARAMPROB_HEADER, NOTHING },
	{ V6, ICMP6_TIME_EXCEEDED, ICMP6_PARAMPROB_NEXTHEADER, NOTHING },
	{ SO_EE_ORIGIN_LOCAL, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, NOTHING },
};

/* An association that is informed of these errors. */
static void told_of(unsigned n, uint8_t origin, uint8_t type, uint8_t code)
{
	icmp = (struct sock_extended_err){
		.ee_origin = origin, .ee_type = type, .ee_code = code, .ee_info = 1400
	};
	left = n;
	errors = 0;
	sys_instead.recvmsg = give_queued_error;
	make_sock_readable(EPOLLERR);
	sys_instead.recvmsg = NULL;
}

static size_t get_widest_sd_native_rare(struct side *s)
{
	B->info(s->a, &s->info);
	return s->info.max_user_data;
}

static void check_icmp(const struct icmp_row *r)
{
	struct side *s = &srv.peers[0];
	size_t before;

	start_sd_hand();
	about = wire_up(ddp, sizeof ddp);
	/* as if the loopback interface's size had been answered */
	s->a->sa->path[0]->tx.pmtu.size = 9000;
	ddps_sent_mtu_changed(&s->a->sa->tx, &s->a->sa->path[0]->tx, DDPS_PMTU_SIZE);
	before = get_widest_sd_native_rare(s);
	told_of(1, r->origin, r->type, r->code);
	cr_expect_eq(errors, 2);
	cr_expect_eq(get_sd_native_rare_counted().icmp_believed, r->fate >= NARROWER, "%u %u %u",
		     r->origin, r->type, r->code);
	cr_expect_eq(get_sd_native_rare_counted().icmp_ignored, r->fate == IGNORED, "%u %u %u",
		     r->origin, r->type, r->code);
	cr_expect_eq(s->gone, r->fate == GONE, "%u %u %u", r->origin, r->type, r->code);
	if (s->gone)
		cr_expect_eq(s->end.code, DDPS_E_RESET);
	else
		cr_expect_eq(get_widest_sd_native_rare(s) < before, r->fate == NARROWER, "%u %u %u",
			     r->origin, r->type, r->code);
	stop_sd_hand(about);
}

Test(sd_native_rare, each_icmp_error_means_what_it_says,
     .description = "9260-10-2 9260-10-5 9260-10-6")
{
	for (unsigned i = 0; i < sizeof icmp_rows / sizeof *icmp_rows; i++)
		check_icmp(&icmp_rows[i]);
}

/* One that says nothing of what it is about is passed over, and a turn takes so many only. */
Test(sd_native_rare, a_queue_of_errors_is_read_in_turns)
{
	start_sd_hand();
	about = wire_up(ddp, sizeof ddp);
	mute = true;
	told_of(3, V4, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH);
	cr_expect_eq(errors, 4);
	cr_expect_eq(srv.peers[0].gone, 0);

	mute = false;
	told_of(100, V4, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH);
	cr_expect_eq(left, 36);
	cr_expect(srv.ep->sock->errors, "there may be more");
	told_of(36, V4, ICMP_DEST_UNREACH, ICMP_HOST_UNREACH);
	cr_expect_eq(get_sd_native_rare_counted().icmp_ignored, 100);
	cr_expect_not(srv.ep->sock->errors);
	stop_sd_hand(about);
}

/* Each is what it says itself, whatever the one before it was. */
static const struct mixed_row {
	struct one_error e[2];
	unsigned gone;
} mixed_rows[] = {
	{ { { .code = ICMP_HOST_UNREACH }, { .code = ICMP_PORT_UNREACH } }, 1 },
	{ { { .code = ICMP_HOST_UNREACH }, { .code = ICMP_PROT_UNREACH } }, 1 },
	{ { { .code = ICMP_HOST_UNREACH }, { .code = ICMP_PORT_UNREACH, .nameless = true } }, 0 },
	{ { { .code = ICMP_PORT_UNREACH, .unquoted = true }, { .code = ICMP_HOST_UNREACH } }, 0 },
	{ { { .code = ICMP_PORT_UNREACH, .unquoted = true }, { .code = ICMP_PORT_UNREACH } }, 1 },
};

Test(sd_native_rare, errors_of_one_turn_are_each_their_own, .description = "9260-10-5")
{
	for (unsigned i = 0; i < sizeof mixed_rows / sizeof *mixed_rows; i++) {
		const struct mixed_row *r = &mixed_rows[i];

		start_sd_hand();
		about = wire_up(ddp, sizeof ddp);
		mixed = r->e;
		told_of(2, V4, ICMP_DEST_UNREACH, 0);
		mixed = NULL;
		cr_expect_eq(errors, 3, "%u: all are read", i);
		cr_expect_eq(srv.peers[0].gone, r->gone, "%u", i);
		cr_expect_eq(get_sd_native_rare_counted().icmp_believed, r->gone, "%u", i);
		cr_expect_eq(get_sd_native_rare_counted().icmp_ignored, 2 - r->gone, "%u", i);
		stop_sd_hand(about);
	}
}

/* As many datagrams as are asked for, of nothing. */
static int without_a_pause(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	(void)fd;
	(void)flags;
	for (unsigned i = 0; i < n; i++) {
		m[i].msg_len = 1;
		m[i].msg_hdr.msg_controllen = 0;
	}
	return (int)n;
}

/* What is there to be read is read before an error, but for no more than a few turns. */
Test(sd_native_rare, a_flood_puts_an_error_off_for_a_few_turns)
{
	unsigned turns = 0;

	start_sd_hand();
	about = wire_up(ddp, sizeof ddp);
	sys_instead.recvmmsg = without_a_pause;
	while (!srv.peers[0].gone && turns < 100) {
		told_of(1, V4, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH);
		turns++;
	}
	sys_instead.recvmmsg = NULL;
	cr_expect_eq(srv.peers[0].gone, 1);
	cr_expect_eq(turns, 9, "%u", turns);
	stop_sd_hand(about);
}

/* ---- a socket that is empty, and things to do nevertheless ---- */

Test(sd_native_rare, a_look_in_vain_sends_what_waits)
{
	uint8_t msg[100] = { 0 };
	struct iovec iov = { msg, sizeof msg };
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	while (receive_sd_hand(x))
		;
	cr_assert_eq(B->send(srv.peers[0].a, 0, 16, &iov, 1), 0);
	make_sock_readable(EPOLLIN);
	cr_expect(receive_sd_hand(x));
	cr_expect_eq(x->in[12], C_DATA);
	make_sock_readable(EPOLLIN);
	cr_expect_not(receive_sd_hand(x));
	stop_sd_hand(x);
}

Test(sd_native_rare, a_look_in_vain_closes_what_nobody_uses)
{
	struct sockaddr_storage any;
	socklen_t len = get_sd_backend_loopback(&any, AF_INET, 0);
	struct ddps_sn_sock *s;
	struct ddps_sn_env *ne;

	start_sd_hand();
	ne = srv.ep->ne;
	cr_assert_eq(ddps_sn_sock_bind(ne, (struct sockaddr *)&any, len, 0, 0, 0, &s), 0);
	cr_expect_eq(ne->socks[s->via], s);
	ddps_sn_sock_put(s);
	make_sock_readable(EPOLLIN);
	cr_expect_null(ne->socks[1]);
	cr_expect_eq(ne->socks[0], srv.ep->sock);
	stop_sd_hand(NULL);
}

/* ---- no room ---- */

/* Packets that the kernel does not take wait until it has room, and then they leave. */
Test(sd_native_rare, a_full_socket_is_waited_for)
{
	uint8_t msg[100] = { 0 };
	struct ddps_sn_sock *s;
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	while (receive_sd_hand(x))
		;
	s = srv.ep->sock;
	sys_fail("sendmsg", 0, 1000, EAGAIN);
	give_to_hand_peer(0, 16, msg, sizeof msg);
	cr_expect_gt(sys_failed(), 0);
	cr_expect(s->full);
	cr_expect_not(ddps_timer_runs(&srv.ep->ne->timer), "the socket will tell");
	make_sock_readable(EPOLLIN);
	cr_expect(s->full, "nothing was said of room");
	sys_fail(NULL, 0, 0, 0);
	give_to_hand_peer(0, 16, msg, sizeof msg);
	cr_expect_not(receive_sd_hand(x));
	WAIT_FOR(!s->full, &sn);
	expect_sd_hand(x, C_DATA);
	cr_expect_eq(x->in[14] << 8 | x->in[15], 16 + 100);
	cr_expect_eq(s->io.events, EPOLLIN);
	cr_expect(ddps_timer_runs(&srv.ep->ne->timer));
	stop_sd_hand(x);
}

/* Each error of a send is looked for in the queue of errors; the packet is tried once more. */
Test(sd_native_rare, a_send_that_fails_once_is_tried_again)
{
	uint8_t msg[100] = { 0 };
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	sys_fail("sendmsg", 0, 1, EHOSTUNREACH);
	give_to_hand_peer(0, 16, msg, sizeof msg);
	cr_expect_eq(sys_failed(), 1);
	cr_expect(srv.ep->sock->errors);
	expect_sd_hand(x, C_DATA);
	stop_sd_hand(x);
}

/* ---- runs of packets ---- */

/* Three packets of a run that the kernel would cut; how many sends it took. */
static unsigned sends_of_a_run(struct wire *x, int error)
{
	static uint8_t msg[1100];
	struct iovec iov = { msg, sizeof msg };
	struct ddps_sn_sock *s = srv.ep->sock;
	unsigned got = 0;

	s->gso = true;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(B->send(srv.peers[0].a, 0, 16, &iov, 1), 0);
	sys_fail("sendmsg", 0, error ? 2 : 0, error);
	B->flush(srv.peers[0].a);
	cr_expect_eq(sys_failed(), error ? 2 : 0, "%s", strerror(error));
	cr_expect_eq(s->gso, !error, "%s", strerror(error));
	while (receive_sd_hand(x))
		got += x->in[12] == C_DATA;
	return got;
}

/* A kernel, or a device, that cannot cut runs says so in one of several ways: they leave singly. */
Test(sd_native_rare, a_run_that_cannot_be_cut_leaves_packet_by_packet)
{
	static const int errors_of_gso[] = { 0, EIO, EINVAL, ENOPROTOOPT, EOPNOTSUPP };

	for (unsigned i = 0; i < 5; i++) {
		start_sd_hand();
		about = wire_up(ddp, sizeof ddp);
		told_of(1, V4, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED);
		while (receive_sd_hand(about))
			;
		cr_expect_eq(sends_of_a_run(about, errors_of_gso[i]), 3);
		stop_sd_hand(about);
	}
}
