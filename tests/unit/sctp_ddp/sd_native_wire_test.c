/* SPDX-License-Identifier: BSD-2-Clause */
/* The native backend against a peer made by hand: what is on the wire, and hostile packets. */
#include "sctp_ddp/backend/native/sd_native.h"
#include "sctp_ddp/backend/sd_sock.h"
#include "sd_hand_fixture.h"
#include "unit/mem_fixture.h"
#include "unit/sys_fixture.h"

#ifdef __has_feature
#define ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#else
#define ASAN 0
#endif

/* ---- addresses ---- */

/* A socket of IPv6 has both families. */
Test(sd_native_wire, addresses_of_both_families)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 192, 0, 2, 7 };
	struct ddps_sctp_addr a4 = { .family = 4, .ip = { 192, 0, 2, 7 } }, back;
	struct ddps_sctp_addr a6 = { .family = 6, .ip = { 0xfe, 0x80, [15] = 9 }, .scope = 3 };
	struct sockaddr_storage ss;
	const struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

	cr_expect_eq(ddps_sn_sockaddr(&a4, 7174, AF_INET, &ss), sizeof *in);
	cr_expect(ss.ss_family == AF_INET && in->sin_port == htons(7174) &&
		  !memcmp(&in->sin_addr, a4.ip, 4));
	cr_expect_eq(ddps_sn_sockaddr(&a4, 7174, AF_INET6, &ss), sizeof *in6);
	cr_expect(ss.ss_family == AF_INET6 && in6->sin6_port == htons(7174));
	cr_expect_arr_eq(&in6->sin6_addr, mapped, sizeof mapped);
	back = ddps_sn_addr(&ss);
	cr_expect(ddps_sc_addr_eq(&back, &a4));
	cr_expect_eq(ddps_sn_sockaddr(&a6, 1, AF_INET6, &ss), sizeof *in6);
	cr_expect_arr_eq(&in6->sin6_addr, a6.ip, 16);
	cr_expect_eq(in6->sin6_scope_id, 3);
	back = ddps_sn_addr(&ss);
	cr_expect(ddps_sc_addr_eq(&back, &a6));
}

/* tos= of a URI, of all that an endpoint sends. */
Test(sd_native_wire, packets_are_marked_as_the_uri_says)
{
	const struct ddps_uri uri = { .scheme = "sctp", .tos = 0x88 };
	socklen_t len = sizeof(int);
	int tos = 0;

	node_init(&sn);
	srv = (struct server){ .n = &sn };
	srv.sa_len = get_sd_backend_loopback(&srv.sa, AF_INET, 0);
	cr_assert_eq((B)->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&srv.sa, srv.sa_len,
				 FX_BACKLOG, &fx_listen_up, &srv, &srv.ep),
		     0);
	cr_assert_eq(getsockopt(srv.ep->sock->io.fd, IPPROTO_IP, IP_TOS, &tos, &len), 0);
	cr_expect_eq(tos, 0x88);
	(B)->endpoint_free(srv.ep);
	node_fini(&sn, B);
}

/* ---- what is on the wire ---- */

static void check_init(const struct wire *x, uint16_t streams_out)
{
	struct ddps_rbuf r = ddps_rbuf_init(x->in + 24, 4);
	const uint8_t *p;
	size_t len;

	cr_expect_eq(ddps_rbuf_u16(&r), streams_out);
	cr_expect_eq(ddps_rbuf_u16(&r), DDPS_SCTP_STREAMS);
	p = find_sd_hand_param(x, P_ADAPTATION, &len);
	cr_assert(p);
	cr_expect_eq(len, 4);
	cr_expect_arr_eq(p, ddp + 4, 4);
	/* no partial reliability, no stream reset, no address changes */
	cr_expect(!find_sd_hand_param(x, P_FORWARD_TSN, &len));
	cr_expect(!find_sd_hand_param(x, P_EXTENSIONS, &len));
}

Test(sd_native_wire, init_ack_carries_the_indication,
     .description = "5043-5.1-1 5043-5.1-d1 5043-5.1-d2 5043-8-1 5043-11.1-1")
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	wire_init(x, 4000);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	check_init(x, 20); /* as many as the peer takes */
	stop_sd_hand(x);
}

Test(sd_native_wire, init_carries_the_indication,
     .description = "5043-5.1-1 5043-5.1-d1 5043-8-1 5043-8-d2 5043-11.1-1")
{
	struct wire *x = calloc(1, sizeof *x);
	struct sockaddr_storage udp, sa;
	socklen_t len = get_sd_backend_loopback(&udp, AF_INET, 0);
	struct side cli = { 0 };

	node_init(&sn);
	x->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(x->fd, (struct sockaddr *)&udp, len), 0);
	getsockname(x->fd, (struct sockaddr *)&udp, &len);
	get_sd_backend_loopback(&sa, AF_INET, 7174);
	cr_assert_eq(try_connect(&cli, &sn, B, &sa, len,
				 ntohs(((struct sockaddr_in *)&udp)->sin_port), 5000),
		     0);
	expect_sd_hand(x, C_INIT);
	cr_expect_eq(x->in[2] << 8 | x->in[3], 7174);
	check_init(x, DDPS_SCTP_STREAMS);
	stop_sd_hand(x);
}

Test(sd_native_wire, data_is_unordered_whole_and_swapped_by_nobody,
     .description = "5043-10-1 5043-5.2-d1 5043-4-d2")
{
	static const uint8_t want[] = { 0, 3, 0, 0, 0, 0, 0, 16 };
	uint8_t msg[1100];
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	fill_sd_backend(msg, sizeof msg, 0);
	give_to_hand_peer(3, 16, msg, sizeof msg);
	expect_sd_hand(x, C_DATA);
	cr_expect_eq(x->in[13] & ~8, F_UNORDERED | F_FIRST | F_LAST);
	cr_expect_eq(x->in[14] << 8 | x->in[15], 16 + 1100);
	cr_expect_arr_eq(x->in + 20, want, 2);
	cr_expect_arr_eq(x->in + 24, want + 4, 4);
	cr_expect_arr_eq(x->in + 28, msg, sizeof msg);
	stop_sd_hand(x);
}

Test(sd_native_wire, control_asks_for_its_acknowledgement_immediately)
{
	uint8_t msg[4] = { 0, 0, 0, 2 };
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	give_to_hand_peer(0, 17, msg, sizeof msg);
	expect_sd_hand(x, C_DATA);
	cr_expect_eq(x->in[13], 8 | F_UNORDERED | F_FIRST | F_LAST);
	stop_sd_hand(x);
}

/* That of messages of a session may wait: who sends much would have too many. */
Test(sd_native_wire, only_control_asks_for_its_acknowledgement)
{
	static const uint32_t ppids[] = { 16, 17, 16 };
	struct iovec iov = { (void *)(uintptr_t) "abcd", 4 };
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(B->send(srv.peers[0].a, 0, ppids[i], &iov, 1), 0);
	B->flush(srv.peers[0].a);
	expect_sd_hand(x, C_DATA);
	cr_assert_geq(x->in_len, 12 + 3 * 20);
	cr_expect_eq(x->in[13] & 8, 0);
	cr_expect_eq(x->in[13 + 20] & 8, 8);
	stop_sd_hand(x);
}

/* The peer has acknowledged nothing: a sender that bundles would hold the second back. */
Test(sd_native_wire, small_messages_do_not_wait, .description = "5043-11.2-1")
{
	uint8_t msg[20] = { 1 };
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	for (uint8_t i = 1; i <= 3; i++) {
		msg[0] = i;
		give_to_hand_peer(0, 16, msg, sizeof msg);
		expect_sd_hand(x, C_DATA);
		cr_expect_eq(x->in[28], i);
	}
	stop_sd_hand(x);
}

/* ---- the peer's indication ---- */

Test(sd_native_wire, a_peer_without_indication_is_distinguished,
     .description = "5043-11.1-2 5043-11.1-3")
{
	struct wire *x;

	start_sd_hand();
	x = wire_up(NULL, 0);
	cr_expect(!srv.peers[0].info.has_adaptation);
	cr_expect_eq(srv.peers[0].info.in_streams, 10);
	cr_expect_eq(srv.peers[0].info.out_streams, 20);
	stop_sd_hand(x);
}

Test(sd_native_wire, another_indication_is_reported, .description = "5043-11.1-2 5043-11.1-4")
{
	static const uint8_t other[] = { 0xc0, 0x06, 0, 8, 0xde, 0xad, 0xbe, 0xef };
	struct wire *x;

	start_sd_hand();
	x = wire_up(other, sizeof other);
	cr_expect(srv.peers[0].info.has_adaptation);
	cr_expect_eq(srv.peers[0].info.adaptation, 0xdeadbeef);
	stop_sd_hand(x);
}

Test(sd_native_wire, data_next_to_the_cookie_comes_after_accepted)
{
	struct wire *x = malloc(sizeof *x);
	uint8_t msg[100];

	start_sd_hand();
	wire_init(x, 4000);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	fill_sd_backend(msg, sizeof msg, 4);
	begin_cookie(x);
	send_sd_hand_data_chunk(x, F_FIRST | F_LAST, 4, 17, msg, sizeof msg);
	finish_sd_hand(x);
	WAIT_FOR(srv.peers[0].messages == 1, &sn);
	cr_expect_eq(srv.accepted, 1);
	cr_expect_eq(srv.peers[0].ordered, 1); /* the U flag was not set */
	cr_expect_eq(srv.peers[0].ppid, 17);
	cr_expect(srv.peers[0].info.has_adaptation);
	stop_sd_hand(x);
}

/* ---- hostile ---- */

Test(sd_native_wire, a_message_without_end_ends_the_association)
{
	uint8_t *part = calloc(1, 60000);
	struct wire *x;

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	for (int i = 0; i < 60 && !srv.peers[0].gone; i++) {
		begin_sd_hand(x, x->peer_tag);
		send_sd_hand_data_chunk(x, i ? F_UNORDERED : F_UNORDERED | F_FIRST, 1, 16, part,
					60000);
		finish_sd_hand(x);
		spin((struct node *[]){ &sn }, 1);
	}
	WAIT_FOR(srv.peers[0].gone, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_LIMIT);
	cr_expect_eq(srv.peers[0].messages, 0);
	free(part);
	stop_sd_hand(x);
}

Test(sd_native_wire, an_abort_next_to_the_cookie_leaves_nothing)
{
	struct wire *x = malloc(sizeof *x);
	struct node cn;
	struct side cli = { 0 };

	start_sd_hand();
	for (int i = 0; i < 20; i++) {
		wire_init(x, (uint16_t)(4000 + i));
		send_sd_hand_init(x, ddp, sizeof ddp);
		expect_sd_hand(x, C_INIT_ACK);
		read_init_ack(x);
		begin_cookie(x);
		put_sd_hand_chunk(x, C_ABORT, 0, NULL, 0);
		finish_sd_hand(x);
		close(x->fd);
	}
	node_init(&cn);
	srv.on_accept = NULL;
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	B->free(cli.a);
	for (unsigned i = 0; i < MAX_PEERS; i++)
		if (srv.peers[i].a && !srv.peers[i].gone)
			WAIT_FOR(srv.peers[i].gone, &cn, &sn);
	node_fini(&cn, B);
	free(x);
	stop_sd_hand(NULL);
}

Test(sd_native_wire, a_wrong_checksum_is_not_answered)
{
	struct wire *x = malloc(sizeof *x);
	size_t len;

	start_sd_hand();
	wire_init(x, 4000);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	len = (size_t)(x->w.p - x->out);
	for (size_t bit = 0; bit < len * 8; bit++) {
		x->out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(send(x->fd, x->out, len, 0), (ssize_t)len);
		x->out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		spin((struct node *[]){ &sn }, 1);
		cr_assert(!receive_sd_hand(x), "bit %zu", bit);
	}
	stop_sd_hand(x);
}

static uint32_t draw_sd_native_wire_noise(void)
{
	static uint32_t s = 12345;

	s = s * 1664525u + 1013904223u;
	return s >> 8;
}

Test(sd_native_wire, garbage_disturbs_nothing)
{
	struct wire *x;
	uint8_t msg[64];

	start_sd_hand();
	x = wire_up(ddp, sizeof ddp);
	for (int i = 0; i < 3000; i++) {
		size_t len = draw_sd_native_wire_noise() % 200;

		begin_sd_hand(x, i & 1 ? x->peer_tag : draw_sd_native_wire_noise());
		for (size_t n = 12; n < len; n++)
			ddps_wbuf_u8(&x->w, (uint8_t)(draw_sd_native_wire_noise() >> 4));
		/* half with a good checksum; never one that would be an ABORT by luck */
		if (x->out[12] == C_ABORT || x->out[12] == 14 || x->out[12] == 8)
			x->out[12] = 0x3f;
		if (i & 2)
			put_sd_hand_sum(x->out, len < 12 ? 12 : len);
		send(x->fd, x->out, len, 0);
		if (i % 16 == 0)
			spin((struct node *[]){ &sn }, 1);
		while (receive_sd_hand(x))
			;
		if (srv.peers[0].gone)
			break;
	}
	/* Garbage with the right tag and checksum may end its own association, not others. */
	fill_sd_backend(msg, sizeof msg, 2);
	if (!srv.peers[0].gone) {
		x->tsn = 1000;
		begin_sd_hand(x, x->peer_tag);
		send_sd_hand_data_chunk(x, F_UNORDERED | F_FIRST | F_LAST, 2, 16, msg, sizeof msg);
		finish_sd_hand(x);
	}
	wire_init(x, 4001);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	read_init_ack(x);
	begin_cookie(x);
	finish_sd_hand(x);
	expect_sd_hand(x, C_COOKIE_ACK);
	cr_expect_eq(srv.accepted, 2);
	stop_sd_hand(x);
}

/* ---- whoever speaks DTLS to a plain port ---- */

static char misspoken[300];
static unsigned nmisspoken;

static void take_wire_line(void *user, enum ddps_log_level level, const char *facility,
			   const char *text)
{
	(void)user;
	(void)facility;
	if (level > DDPS_LOG_WARN)
		return;
	nmisspoken++;
	snprintf(misspoken, sizeof misspoken, "%s", text);
}

/* Only a ClientHello is one; it is said once. */
Test(sd_native_wire, a_greeting_of_dtls_at_a_plain_port_is_named)
{
	uint8_t hello[40] = { 22, 254, 253, [13] = 1 };
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	sn.env.log.fn = take_wire_line;
	wire_init(x, 4000);
	hello[13] = 2;
	cr_assert_eq(send(x->fd, hello, sizeof hello, 0), sizeof hello);
	spin((struct node *[]){ &sn }, 1);
	cr_expect_eq(nmisspoken, 0);
	hello[13] = 1;
	for (int i = 0; i < 3; i++)
		cr_assert_eq(send(x->fd, hello, sizeof hello, 0), sizeof hello);
	WAIT_FOR(nmisspoken, &sn);
	send_sd_hand_init(x, ddp, sizeof ddp);
	expect_sd_hand(x, C_INIT_ACK);
	cr_expect_eq(nmisspoken, 1);
	cr_expect(strstr(misspoken, "it speaks DTLS, and this port is plain"), "%s", misspoken);
	cr_expect_eq(sn.env.refused[DDPS_REFUSED_PROTOCOL], 1);
	stop_sd_hand(x);
}

/* ---- calls ---- */

static unsigned narrow_calls;

static int check_room(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	for (unsigned i = 0; i < n; i++)
		narrow_calls += m[i].msg_hdr.msg_controllen != sizeof(union ddps_sd_cmsg) ||
				m[i].msg_hdr.msg_namelen != sizeof(struct sockaddr_storage);
	return sys_recvmmsg(fd, m, n, flags);
}

/* Whatever came in the call before it. */
Test(sd_native_wire, each_call_has_room_for_all_that_may_come)
{
	struct wire *x = malloc(sizeof *x);

	start_sd_hand();
	sys_instead.recvmmsg = check_room;
	wire_init(x, 4000);
	for (int i = 0; i < 3; i++) {
		send_sd_hand_init(x, ddp, sizeof ddp);
		expect_sd_hand(x, C_INIT_ACK);
	}
	cr_expect_eq(narrow_calls, 0);
	stop_sd_hand(x);
}

static unsigned count_socks(const struct ddps_sn_env *ne)
{
	unsigned n = 0;

	for (unsigned i = 0; i < ne->nsocks; i++)
		n += ne->socks[i] != NULL;
	return n;
}

/* Its socket is closed in the next turn. */
Test(sd_native_wire, a_dial_without_memory_leaves_no_socket)
{
	struct side cli = { .b = B };
	unsigned fails = 0;
	bool failed;
	int err;

	start_sd_hand();
	do {
		mem_fail(++fails);
		err = try_connect(&cli, &sn, B, &srv.sa, srv.sa_len, srv.encap, 5000);
		failed = mem_failed();
		mem_fail(0);
		cr_expect_eq(err, failed ? DDPS_E_NOMEM : 0);
		if (failed) {
			cr_assert_geq(ddps_loop_run(sn.env.loop), 0);
			cr_expect_eq(count_socks(srv.ep->ne), 1, "%u", fails);
		}
	} while (failed);
	cr_expect_gt(fails, 1);
	(B)->free(cli.a);
	stop_sd_hand(NULL);
}

static size_t resident_kib(void)
{
	unsigned long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert(f);
	cr_assert_eq(fscanf(f, "%lu %lu", &size, &resident), 2);
	fclose(f);
	return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* 16 UDP ports times many SCTP ports, INITs and forged cookies. */
static void flood_sd_native_wire(struct wire *x, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		if (i % 64 == 0) {
			close(x->fd);
			wire_init(x, 1);
		}
		x->sport = (uint16_t)(1024 + i);
		x->my_tag = draw_sd_native_wire_noise() | 1;
		if (i & 1) {
			send_sd_hand_init(x, ddp, sizeof ddp);
		} else {
			begin_sd_hand(x, draw_sd_native_wire_noise());
			for (size_t n = 0; n < sizeof x->cookie; n += 4)
				memcpy(x->cookie + n, &x->my_tag, 4);
			put_sd_hand_chunk(x, C_COOKIE_ECHO, 0, x->cookie, 200);
			finish_sd_hand(x);
		}
		if (i % 8 == 0)
			spin((struct node *[]){ &sn }, 1);
	}
}

Test(sd_native_wire, a_flood_of_forged_set_ups_takes_no_memory, .timeout = 60)
{
	struct node cn;
	struct side cli = { 0 };
	struct wire *x = calloc(1, sizeof *x);
	size_t before;

	start_sd_hand();
	wire_init(x, 1);
	flood_sd_native_wire(x, 2000); /* buffers reach their size */
	before = resident_kib();
	flood_sd_native_wire(x, 20000);
	if (!ASAN) /* which keeps freed memory for a while */
		cr_expect_leq(resident_kib(), before + 512, "40 octets each would show");
	cr_expect_eq(srv.ep->sock->refs, 1);
	cr_expect_eq(srv.accepted, 0);
	cr_expect(TAILQ_EMPTY(&srv.ep->ne->assocs));
	/* and the door is still open */
	node_init(&cn);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up, &cn, &sn);
	node_fini(&cn, B);
	stop_sd_hand(x);
}
