/* SPDX-License-Identifier: BSD-2-Clause */
/* What there is to see of an association of the native SCTP, of its paths and of its packets. */
#include "sd_native_addr_fixture.h"
#include "sctp/sctp_in.h"
#include "unit/sys_fixture.h"
#include <stdio.h>
#include <string.h>

#define UNSET 0xa7 /* nothing is left as the caller had it */

TestSuite(sd_native_see, .timeout = 60);

static void talk_sd_native_see(void)
{
	set_sd_pair_up(AF_INET);
	for (uint16_t k = 0; k < 3; k++)
		cr_assert_eq(send_one_sd_pair(&cli, k, SEGMENT, 500u * (k + 1)), 0);
	WAIT_FOR(srv.peers[0].messages == 3 && is_sd_pair_acknowledged(&cli), &cn, &sn);
}

static void association_is_seen(struct side *s)
{
	struct ddps_assoc_stats st;
	struct ddps_sctp_info i;

	memset(&st, UNSET, sizeof st);
	cr_assert_eq(s->b->assoc_stats(s->a, &st), 0);
	ddps_sctp_info(s->a->sa, &i);
	cr_expect_eq(st.packets_sent, i.sent_packets);
	cr_expect_eq(st.packets_received, i.received_packets);
	cr_expect_eq(st.chunks_sent, i.sent_chunks);
	cr_expect_eq(st.chunks_received, i.received_chunks);
	cr_expect_eq(st.retransmitted, i.retransmitted);
	cr_expect_eq(st.timeouts, i.timeouts);
	cr_expect_eq(st.duplicates, i.duplicates);
	cr_expect_eq(st.gaps, i.gaps);
	cr_expect_eq(st.restarts, i.restarts);
	cr_expect_eq(st.unsent, i.unsent);
	cr_expect_eq(st.unacked, i.unacked);
	cr_expect_eq(st.out_of_order, i.out_of_order);
	cr_expect_eq(st.rwnd, i.rwnd);
	cr_expect_eq(st.peer_rwnd, i.peer_rwnd);
	cr_expect_eq(st.paths, 1);
	cr_expect_str_eq(st.state, "ESTABLISHED");
}

Test(sd_native_see, an_association)
{
	struct ddps_assoc_stats st = { 0 };

	talk_sd_native_see();
	association_is_seen(&cli);
	association_is_seen(&srv.peers[0]);
	cr_expect_eq(cli.b->assoc_stats(cli.a, &st), 0);
	cr_expect_geq(st.chunks_sent, 3); /* a slow host may send one again */
	cr_expect_geq(st.packets_received, 2);
	stop_sd_pair();
}

static void path_is_seen(struct side *s, const char *peer)
{
	struct ddps_path_stats st;
	struct ddps_sctp_path_info p;

	memset(&st, UNSET, sizeof st);
	cr_assert_eq(s->b->path_stats(s->a, 0, &st), 0);
	cr_assert_eq(ddps_sctp_path_info(s->a->sa, 0, &p), 0);
	cr_expect_eq(st.srtt_ns, p.srtt_ns);
	cr_expect_eq(st.rttvar_ns, p.rttvar_ns);
	cr_expect_eq(st.min_rtt_ns, p.min_rtt_ns);
	cr_expect_eq(st.rto_ns, p.rto_ns);
	cr_expect_eq(st.cwnd, p.cwnd);
	cr_expect_eq(st.ssthresh, p.ssthresh);
	cr_expect_eq(st.flight, p.flight);
	cr_expect_eq(st.retransmitted, p.retransmitted);
	cr_expect_eq(st.timeouts, p.timeouts);
	cr_expect_eq(st.mtu, p.mtu);
	cr_expect_eq(st.errors, p.errors);
	cr_expect_eq(st.state, DDPS_PATH_ACTIVE);
	cr_expect_eq(st.encap, p.encap);
	cr_expect_gt(st.encap, 0);
	cr_expect_eq((int)st.primary, 1);
	cr_expect_eq((int)st.in_use, 1);
	cr_expect_str_eq(st.peer, peer);
	if (p.local.family)
		cr_expect_eq(strncmp(st.local, "127.0.0.1:", 10), 0, "%s", st.local);
	st.in_use = false;
	cr_assert_eq(s->b->path_stats(s->a, 0, &st), 0);
	cr_expect(st.in_use);
}

Test(sd_native_see, a_path)
{
	char client[80], server[80];
	struct ddps_sctp_info i;

	talk_sd_native_see();
	ddps_sctp_info(cli.a->sa, &i);
	snprintf(client, sizeof client, "127.0.0.1:%u", i.port);
	snprintf(server, sizeof server, "127.0.0.1:%u", i.peer_port);
	path_is_seen(&cli, server);
	path_is_seen(&srv.peers[0], client);
	stop_sd_pair();
}

static void info_is_right(struct side *s, const char *local, const char *peer, bool by_us)
{
	struct ddps_sd_assoc_info i;

	memset(&i, UNSET, sizeof i);
	s->b->info(s->a, &i);
	cr_expect_eq(i.in_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(i.out_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq((int)i.has_adaptation, 1);
	cr_expect_eq(i.adaptation, DDPS_SCTP_ADAPTATION_DDP);
	cr_expect_str_eq(i.local, local);
	cr_expect_str_eq(i.peer, peer);
	cr_expect_eq(i.encap, by_us ? srv.encap : cli.a->sock->port);
	cr_expect_eq((int)i.by_us, by_us);
	cr_expect_eq((int)i.shut, 0);
	cr_expect_eq(i.max_user_data % 4, 0, "chunks are padded");
	cr_expect_leq(i.max_user_data, ddps_sctp_max_chunk(s->a->sa));
	cr_expect_gt(i.max_user_data + 4, ddps_sctp_max_chunk(s->a->sa));
}

Test(sd_native_see, who_is_there, .description = "5043-8-1 5043-9-d1")
{
	char client[80], server[80];
	struct ddps_sctp_info i;

	talk_sd_native_see();
	ddps_sctp_info(cli.a->sa, &i);
	snprintf(client, sizeof client, "127.0.0.1:%u", i.port);
	snprintf(server, sizeof server, "127.0.0.1:%u", i.peer_port);
	info_is_right(&cli, client, server, true);
	info_is_right(&srv.peers[0], server, client, false);
	stop_sd_pair();
}

static bool is_sd_native_see_shut(struct side *s)
{
	s->b->info(s->a, &s->info);
	return s->info.shut;
}

/* What a stalled session holds is taken off the window, and given back. */
Test(sd_native_see, a_window_is_shut_and_opened)
{
	struct ddps_sctp_info i;
	struct side *s;
	size_t all;

	talk_sd_native_see();
	s = &srv.peers[0];
	ddps_sctp_info(s->a->sa, &i);
	all = i.rwnd;
	cr_expect_not(s->b->keep(s->a, all / 2));
	ddps_sctp_info(s->a->sa, &i);
	cr_expect_leq(i.rwnd, all - all / 2);
	cr_expect_gt(i.rwnd + 1000, all - all / 2, "and what a chunk costs");
	cr_expect(s->b->keep(s->a, all), "shut");
	ddps_sctp_info(s->a->sa, &i);
	cr_expect_eq(i.rwnd, 0);
	cr_assert_eq(send_one_sd_pair(&cli, 0, SEGMENT, 100), 0);
	WAIT_FOR(is_sd_native_see_shut(&cli), &cn, &sn);
	cr_expect_not(s->b->keep(s->a, 0));
	ddps_sctp_info(s->a->sa, &i);
	cr_expect_geq(i.rwnd, all - 200);
	WAIT_FOR(!is_sd_native_see_shut(&cli), &cn, &sn);
	stop_sd_pair();
}

/* Behind a large packet that waits for room a small one waits too. */
Test(sd_native_see, a_window_without_room_is_shut)
{
	static const struct {
		size_t unsent;
		unsigned packets, octets; /* of the peer's window */
		bool shut;
	} cases[] = {
		{ 0, 0, 2999, true }, { 0, 0, 3000, false }, { 0, 1, 0, false },
		{ 1, 0, 3000, true }, { 1, 0, 65535, true }, { 1, 0, 65536, false },
		{ 1, 2, 0, false },
	};
	struct ddps_sctp_path_info p;
	struct ddps_sctp_assoc *sa;

	talk_sd_native_see();
	sa = cli.a->sa;
	cr_assert_eq(ddps_sctp_path_info(sa, 0, &p), 0);
	cr_assert_gt(p.mtu, 60000, "of the loopback interface");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		sa->unsent = cases[i].unsent;
		sa->tx.a_rwnd = cases[i].packets * p.mtu + cases[i].octets;
		cr_expect_eq(is_sd_native_see_shut(&cli), cases[i].shut, "case %zu", i);
	}
	sa->unsent = 0;
	stop_sd_pair();
}

/* What waited while there was no window takes the one that there is now, if it is as long. */
Test(sd_native_see, a_window_that_others_wait_for_is_shut)
{
	static const struct {
		size_t unsent;
		uint32_t rwnd;
		bool waited, shut;
	} cases[] = { { 2000000, 143000, true, true },
		      { 2000000, 143000, false, false },
		      { 2000000, 1999999, true, true },
		      { 2000000, 2000000, true, false } };
	struct ddps_sctp_assoc *sa;

	talk_sd_native_see();
	sa = cli.a->sa;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		sa->unsent = cases[i].unsent;
		sa->buffered += sa->unsent;
		sa->tx.a_rwnd = cases[i].rwnd;
		sa->full_n = sa->acked_n + cases[i].waited;
		cr_expect_eq(is_sd_native_see_shut(&cli), cases[i].shut, "case %zu", i);
		sa->buffered -= sa->unsent;
	}
	sa->unsent = 0;
	stop_sd_pair();
}

/* Of one that the engine does not know nothing is. */
Test(sd_native_see, of_a_peer_that_cannot_be_reached_nothing_is_known)
{
	struct ddps_sd_assoc_info info, none;
	struct ddps_uri uri = { .encap = 9 };
	struct sockaddr_storage to;
	socklen_t len = get_sd_backend_loopback(&to, AF_INET, 7174);

	node_init(&cn);
	cli = (struct side){ .b = B };
	sys_fail("connect", 0, 1, ENETUNREACH);
	cr_assert_eq(B->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&to, len,
				&(struct ddps_llp_param){ .connect_ms = 60000 }, &fx_up, &cli,
				&cli.a),
		     0);
	memset(&info, UNSET, sizeof info);
	memset(&none, 0, sizeof none);
	B->info(cli.a, &info);
	cr_expect_arr_eq(&info, &none, sizeof info);
	WAIT_FOR(cli.gone, &cn);
	node_fini(&cn, B);
}

/* ---- several paths ---- */

/* The endpoint has two addresses, and the client connects to both. */
static void two_paths(void)
{
	struct ddps_uri uri = { .encap = 0 };
	char text[DDPS_ADDRS_TEXT];
	uint16_t port;

	srv = (struct server){ 0 };
	for (int i = 0; i < MAX_PEERS; i++)
		srv.peers[i].b = B;
	node_init(&sn);
	node_init(&cn);
	put_sd_native_addr(&uri.hosts, "127.0.0.1", 0);
	put_sd_native_addr(&uri.hosts, "127.0.0.2", 0);
	cr_assert_eq(B->listen(&sn.env, &sn.ctx, &uri, (struct sockaddr *)&uri.hosts.at[0],
			       sizeof(struct sockaddr_in), FX_BACKLOG, &fx_listen_up, &srv,
			       &srv.ep),
		     0);
	B->endpoint_addr(srv.ep, text, sizeof text, &srv.encap);
	cr_expect_eq(strncmp(text, "127.0.0.1,127.0.0.2:", 20), 0, "%s", text);
	port = (uint16_t)atoi(strrchr(text, ':') + 1);
	ddps_sd_set_port(&uri.hosts.at[0], port);
	ddps_sd_set_port(&uri.hosts.at[1], port);
	uri.encap = srv.encap;
	cli = (struct side){ .b = B };
	cr_assert_eq(B->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&uri.hosts.at[0],
				sizeof(struct sockaddr_in),
				&(struct ddps_llp_param){ .connect_ms = 60000 }, &fx_up, &cli,
				&cli.a),
		     0);
	WAIT_FOR(cli.up && srv.accepted, &cn, &sn);
}

static bool is_active(uint32_t path)
{
	struct ddps_path_stats st = { 0 };

	cr_assert_eq(B->path_stats(cli.a, path, &st), 0);
	return st.state == DDPS_PATH_ACTIVE;
}

Test(sd_native_see, the_path_that_is_preferred_is_shown)
{
	struct ddps_path_stats st = { 0 };
	struct ddps_sd_assoc_info i;

	two_paths();
	B->info(cli.a, &i);
	cr_expect_eq(strncmp(i.peer, "127.0.0.1:", 10), 0, "%s", i.peer);
	WAIT_FOR(is_active(1), &cn, &sn);
	cr_assert_eq(B->set_primary(cli.a, 1), 0);
	cr_expect_not(ddps_sctp_pending(cli.a->ne->e), "what waited for it has left");
	B->info(cli.a, &i);
	cr_expect_eq(strncmp(i.peer, "127.0.0.2:", 10), 0, "%s", i.peer);
	cr_expect_eq(B->path_stats(cli.a, 1, &st), 0);
	cr_expect(st.primary);
	cr_expect_eq(strncmp(st.peer, "127.0.0.2:", 10), 0, "%s", st.peer);
	cr_expect_eq(B->path_stats(cli.a, 0, &st), 0);
	cr_expect_not(st.primary);
	stop_sd_pair();
}

/* ---- packets ---- */

static struct shown {
	unsigned n;
	struct sockaddr_storage local, peer;
	size_t len;
	bool sent;
	enum ddps_transport transport;
} shown;

static void capture_sd_native_see(void *user, const struct ddps_packet *p)
{
	struct shown *s = user;

	s->n++;
	memcpy(&s->peer, p->peer, ddps_addr_len((const void *)p->peer));
	s->local.ss_family = p->local->sa_family;
	if (p->local->sa_family)
		memcpy(&s->local, p->local, ddps_addr_len((const void *)p->local));
	s->len = p->len;
	s->sent = p->sent;
	s->transport = p->transport;
}

static void tap_sd_native_see(const char *peer, const char *local, const char *shown_local)
{
	struct ddps_env env = { .capture = capture_sd_native_see, .capture_user = &shown };
	static struct ddps_sn_env ne;
	struct ddps_sctp_route r = { 0 };
	struct iovec iov[3] = { { "abc", 3 }, { "de", 2 }, { "f", 1 } };
	bool v6 = strchr(peer, ':');
	char text[80];

	ne.env = &env;
	shown = (struct shown){ 0 };
	r.peer.family = v6 ? 6 : 4;
	cr_assert_eq(inet_pton(v6 ? AF_INET6 : AF_INET, peer, r.peer.ip), 1);
	r.encap = 9899;
	if (local) {
		r.local.family = r.peer.family;
		cr_assert_eq(inet_pton(v6 ? AF_INET6 : AF_INET, local, r.local.ip), 1);
	}
	ddps_sn_tap(&ne, 0, true, &r, iov, 2);
	cr_expect_eq(shown.n, 1);
	cr_expect_eq(shown.len, 5, "of the parts that count");
	cr_expect(shown.sent);
	cr_expect_eq(shown.transport, DDPS_TRANSPORT_SCTP);
	ddps_addr_text((struct sockaddr *)&shown.peer, text, sizeof text);
	cr_expect_eq(shown.peer.ss_family, v6 ? AF_INET6 : AF_INET);
	cr_expect_eq(strncmp(text + v6, peer, strlen(peer)), 0, "%s", text);
	cr_expect_str_eq(strrchr(text, ':'), ":0");
	if (!shown_local) {
		cr_expect_eq(shown.local.ss_family, AF_UNSPEC);
		return;
	}
	cr_expect_eq(shown.local.ss_family, v6 ? AF_INET6 : AF_INET);
	ddps_addr_text((struct sockaddr *)&shown.local, text, sizeof text);
	cr_expect_eq(strncmp(text + v6, shown_local, strlen(shown_local)), 0, "%s", text);
	if (local)
		cr_expect_str_eq(strrchr(text, ':'), ":0");
}

Test(sd_native_see, a_packet_is_shown_with_its_addresses)
{
	tap_sd_native_see("127.0.0.3", "127.0.0.7", "127.0.0.7");
	tap_sd_native_see("2001:db8::5", "2001:db8::6", "2001:db8::6");
	tap_sd_native_see("127.0.0.3", NULL, "127.0.0.1");
	sys_fail("connect", 0, 1, ENETUNREACH);
	tap_sd_native_see("127.0.0.3", NULL, NULL);
}

/* ---- words ---- */

static char line[300];

static void note_sd_native_see(void *user, enum ddps_log_level level, const char *facility,
			       const char *message)
{
	(void)user;
	(void)facility;
	if (level <= DDPS_LOG_INFO)
		snprintf(line, sizeof line, "%s", message);
}

Test(sd_native_see, the_state_of_a_path_is_logged)
{
	static const char *const names[] = { "unconfirmed", "active", "doubtful", "inactive" };
	struct ddps_sctp_addr peer = { .family = 4, .ip = { 192, 0, 2, 7 } };
	char text[80];

	set_sd_pair_up(AF_INET);
	cn.env.log = (struct ddps_log){ note_sd_native_see, NULL };
	for (unsigned i = 0; i < 4; i++) {
		ddps_sn_up.path(cli.a, &peer, (enum ddps_sctp_path_state)i);
		snprintf(text, sizeof text, "path to 192.0.2.7:0 is %s", names[i]);
		cr_expect_str_eq(line, text);
	}
	ddps_sn_up.refused(cli.a, &peer);
	cr_expect(strstr(line, "192.0.2.7:0 refuses"), "%s", line);
	cn.env.log = (struct ddps_log){ 0 };
	stop_sd_pair();
}

/* No call of the system has failed. */
Test(sd_native_see, an_end_has_no_number_of_the_system)
{
	set_sd_pair_up(AF_INET);
	B->abort(cli.a);
	ddps_sn_up.restarted(cli.a); /* it is over */
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.restarted, 0);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_eq(cli.end.sys_errno, 0);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].end.sys_errno, 0);
	stop_sd_pair();
}

Test(sd_native_see, nobody_answers_in_time)
{
	struct ddps_uri uri = { .encap = 9 };
	struct sockaddr_storage to;
	socklen_t len = get_sd_backend_loopback(&to, AF_INET, 7174);

	node_init(&cn);
	cli = (struct side){ .b = B };
	cr_assert_eq(B->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&to, len,
				&(struct ddps_llp_param){ .connect_ms = 60000 }, &fx_up, &cli,
				&cli.a),
		     0);
	cr_expect(ddps_timer_runs(&cli.a->deadline));
	cli.a->deadline.fn(cli.a->deadline.user);
	WAIT_FOR(cli.gone, &cn);
	cr_expect_eq(cli.end.code, DDPS_E_TIMEDOUT);
	cr_expect_eq(cli.end.sys_errno, 0);
	cr_expect_str_eq(cli.end.text,
			 "no SCTP association in time (does the peer listen on sctp:// at "
			 "this port, and not on sctps://?)");
	node_fini(&cn, B);
}
