/* SPDX-License-Identifier: BSD-2-Clause */
/* The backend for the kernel's SCTP.  Where the kernel has none, that is what is tested. */
#include "peer/usrsctp.h"
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sd_backend_fixture.h"
#include "unit/mem_fixture.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define B	(&ddps_sd_kernel)
#define SEGMENT 16u
#define RAW	DDPS_URI_ENCAP_OFF

static struct node cn, sn;
static struct server srv;
static struct side cli;

static void need_sctp(bool want)
{
	if (B->available() != want)
		cr_skip_test("the kernel %s", want ? "has no SCTP" : "has SCTP");
}

static void set_sd_kernel_up(int family)
{
	need_sctp(true);
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, family, 0, RAW), 0, "errno %d", errno);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, RAW, 5000), 0);
	WAIT_FOR((cli.up && srv.accepted) || cli.gone, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
}

static void stop_sd_kernel(void)
{
	node_fini(&cn, B);
	node_fini(&sn, B);
}

static int send_one_sd_kernel(struct side *s, uint16_t stream, size_t len)
{
	uint8_t *p = malloc(len);
	struct iovec iov[2] = { { p, len / 2 }, { p + len / 2, len - len / 2 } };
	int err;

	fill_sd_backend(p, len, stream);
	err = s->b->send(s->a, stream, SEGMENT, iov, 2);
	if (s->b->flush)
		s->b->flush(s->a);
	free(p);
	return err;
}

/* ---- without SCTP in the kernel ---- */

Test(sd_kernel, says_that_the_kernel_has_no_sctp)
{
	struct sockaddr_storage sa;
	socklen_t len = get_sd_backend_loopback(&sa, AF_INET, 7174);

	need_sctp(false);
	node_init(&cn);
	errno = 0;
	cr_expect_eq(try_listen(&srv, &cn, B, AF_INET, 7174, RAW), DDPS_E_UNSUPPORTED);
	cr_expect(errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT, "errno %d", errno);
	errno = 0;
	cr_expect_eq(try_connect(&cli, &cn, B, &sa, len, RAW, 100), DDPS_E_UNSUPPORTED);
	cr_expect(errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT, "errno %d", errno);
	cr_expect_null(cli.a);
	node_fini(&cn, B);
}

Test(sd_kernel, fini_of_a_context_that_never_used_it)
{
	node_init(&cn);
	cr_expect_null(cn.ctx);
	node_fini(&cn, B);
}

/* Nothing would tell its sessions that what they wait for has arrived. */
Test(sd_kernel, an_association_that_cannot_ask_for_acknowledgements_ends)
{
	struct ddps_sk_env ke = { .env = &cn.env };
	struct ddps_sd_assoc a = { .ke = &ke,
				   .io = { .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) } };

	node_init(&cn);
	cr_assert_geq(a.io.fd, 0);
	B->ask_dry(&a); /* which that socket cannot tell */
	cr_expect(a.life.ending);
	cr_expect_eq(a.life.end.code, DDPS_E_SYSTEM);
	cr_expect_eq(a.io.fd, -1);
	ddps_task_cancel(cn.env.loop, &a.task);
	node_fini(&cn, B);
}

/* ---- with SCTP ---- */

Test(sd_kernel, indication_and_streams_seen_on_both_ends,
     .description = "5043-5.1-1 5043-5.1-d1 5043-8-1 5043-11.1-1")
{
	const struct ddps_sd_assoc_info *c = &cli.info, *s = &srv.peers[0].info;

	set_sd_kernel_up(AF_INET);
	cr_expect(c->has_adaptation && s->has_adaptation);
	cr_expect_eq(c->adaptation, 1);
	cr_expect_eq(s->adaptation, 1);
	cr_expect_eq(c->in_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(s->out_streams, DDPS_SCTP_STREAMS);
	cr_expect(c->by_us && !s->by_us);
	cr_expect_eq(c->encap, 0);
	cr_expect_str_eq(c->local, s->peer);
	cr_expect_str_eq(c->peer, s->local);
	cr_expect_gt(c->max_user_data, 1400);
	stop_sd_kernel();
}

Test(sd_kernel, messages_arrive_as_sent, .description = "5043-5.2-d1 5043-10-1")
{
	static const size_t sizes[] = { 1, 4, 516, 1452, 9000, 64000, DDPS_SD_MSG_MAX - 1 };
	const unsigned n = sizeof sizes / sizeof sizes[0];

	set_sd_kernel_up(AF_INET6);
	for (unsigned i = 0; i < n; i++) {
		uint16_t stream = (uint16_t)(i * (DDPS_SCTP_STREAMS - 1) / (n - 1));

		cr_assert_eq(send_one_sd_kernel(&cli, stream, sizes[i]), 0);
		WAIT_FOR(srv.peers[0].messages == i + 1, &cn, &sn);
		cr_expect_eq(srv.peers[0].last_len, sizes[i]);
		cr_expect_eq(srv.peers[0].stream, stream);
		cr_expect_eq(srv.peers[0].ppid, SEGMENT);
	}
	cr_expect(!srv.peers[0].bad);
	cr_expect_eq(srv.peers[0].ordered, 0);
	cr_expect_eq(send_one_sd_kernel(&cli, 0, DDPS_SD_MSG_MAX + 1), DDPS_E_TOO_LONG);
	cr_expect_eq(send_one_sd_kernel(&cli, DDPS_SCTP_STREAMS, 10), DDPS_E_INVAL);
	stop_sd_kernel();
}

Test(sd_kernel, a_reader_that_pauses_stops_the_writer)
{
	int err, sent = 0;

	set_sd_kernel_up(AF_INET);
	B->pause(srv.peers[0].a, true);
	while ((err = send_one_sd_kernel(&cli, 0, 60000)) == 0 && sent < 2000) {
		sent++;
		ddps_loop_run(sn.env.loop);
	}
	cr_assert_eq(err, DDPS_E_AGAIN);
	cr_expect_eq(srv.peers[0].messages, 0);
	B->pause(srv.peers[0].a, false);
	WAIT_FOR(srv.peers[0].messages == (unsigned)sent && cli.writable, &cn, &sn);
	B->ask_dry(cli.a);
	WAIT_FOR(cli.dry == 1, &cn, &sn);
	cr_expect(!srv.peers[0].bad);
	stop_sd_kernel();
}

Test(sd_kernel, shutdown_delivers_what_was_sent_and_ends_in_order)
{
	set_sd_kernel_up(AF_INET);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(send_one_sd_kernel(&cli, 1, 30000), 0);
	B->shutdown(cli.a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 10);
	cr_expect_eq(srv.peers[0].peer_shutdown, 1);
	cr_expect_eq(cli.end.code, 0, "%s", cli.end.text);
	cr_expect_eq(srv.peers[0].end.code, 0, "%s", srv.peers[0].end.text);
	stop_sd_kernel();
}

Test(sd_kernel, abort_ends_both_sides)
{
	set_sd_kernel_up(AF_INET);
	B->abort(cli.a);
	WAIT_FOR(cli.gone && srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_CLOSED);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	stop_sd_kernel();
}

Test(sd_kernel, a_paused_reader_learns_of_an_abort)
{
	set_sd_kernel_up(AF_INET);
	B->pause(srv.peers[0].a, true);
	cr_assert_eq(send_one_sd_kernel(&cli, 1, 1000), 0);
	B->ask_dry(cli.a);
	WAIT_FOR(cli.dry, &cn, &sn);
	B->abort(cli.a);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].end.code, DDPS_E_RESET);
	cr_expect_eq(srv.peers[0].messages, 0);
	stop_sd_kernel();
}

Test(sd_kernel, a_paused_reader_loses_nothing_to_a_shutdown)
{
	set_sd_kernel_up(AF_INET);
	B->pause(srv.peers[0].a, true);
	cr_assert_eq(send_one_sd_kernel(&cli, 1, 1000), 0);
	B->shutdown(cli.a);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].gone, 0);
	for (int i = 0; i < 100; i++) /* its loop has nothing to do */
		ddps_loop_run(sn.env.loop);
	B->pause(srv.peers[0].a, false);
	WAIT_FOR(srv.peers[0].gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	cr_expect_eq(srv.peers[0].end.code, 0, "%s", srv.peers[0].end.text);
	stop_sd_kernel();
}

static void free_sd_kernel(struct side *s)
{
	B->free(s->a);
}

Test(sd_kernel, free_is_allowed_inside_upcalls)
{
	set_sd_kernel_up(AF_INET);
	srv.peers[0].on_message = free_sd_kernel;
	cli.on_gone = free_sd_kernel;
	for (int i = 0; i < 10; i++)
		cr_assert_eq(send_one_sd_kernel(&cli, 1, 100), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(srv.peers[0].messages, 1);
	cr_expect_eq(cli.end.code, DDPS_E_RESET);
	stop_sd_kernel();
}

Test(sd_kernel, nobody_listening_is_a_refusal)
{
	set_sd_kernel_up(AF_INET);
	B->endpoint_free(srv.ep);
	cli = (struct side){ 0 };
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, RAW, 5000), 0);
	WAIT_FOR(cli.gone, &cn, &sn);
	cr_expect_eq(cli.end.code, DDPS_E_REFUSED, "%s", cli.end.text);
	stop_sd_kernel();
}

#define CROWD 24

/* Those who wait to be accepted cost the kernel's memory: as many as listen() was given, and one. */
Test(sd_kernel, attack_3_no_more_wait_to_be_accepted_than_the_backlog)
{
	static struct side crowd[CROWD];
	unsigned up, gone;

	need_sctp(true);
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, 0, RAW), 0, "errno %d", errno);
	for (int i = 0; i < CROWD; i++)
		cr_assert_eq(try_connect(&crowd[i], &cn, B, &srv.sa, srv.sa_len, RAW, 10000), 0);
	do { /* the server looks away */
		up = gone = 0;
		for (int i = 0; i < CROWD; i++) {
			up += crowd[i].up;
			gone += crowd[i].gone;
		}
		spin((struct node *[]){ &cn }, 1);
	} while (up + gone < CROWD);
	cr_expect_eq(up, FX_BACKLOG + 1);
	for (int i = 0; i < CROWD; i++)
		cr_expect(!crowd[i].gone || crowd[i].end.code == DDPS_E_REFUSED, "%d: %s", i,
			  crowd[i].end.text);
	WAIT_FOR(srv.accepted == up, &sn);
	stop_sd_kernel();
}

/* ---- the two backends with each other, over UDP ---- */

static uint16_t kernel_udp_port(void)
{
	FILE *f = fopen("/proc/sys/net/sctp/udp_port", "r");
	unsigned port = 0;

	if (f) {
		cr_assert_eq(fscanf(f, "%u", &port), 1);
		fclose(f);
	}
	if (!port)
		cr_skip_test("sysctl net.sctp.udp_port is 0");
	return (uint16_t)port;
}

/* The peer has acknowledged all 20 messages: some backends count, the others say so when asked. */
static bool all_taken(const struct side *s)
{
	return s->b->acks ? s->acked == 20 : s->dry == 1;
}

static void talk_sd_kernel(void)
{
	struct side *s = &srv.peers[0];

	WAIT_FOR((cli.up && srv.accepted) || cli.gone, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
	cr_expect(cli.info.has_adaptation && s->info.has_adaptation);
	cr_expect_eq(cli.info.adaptation + s->info.adaptation, 2);
	cr_expect_eq(cli.info.out_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(s->info.out_streams, DDPS_SCTP_STREAMS);
	cr_expect_eq(cli.info.encap, srv.encap);
	cr_expect_neq(s->info.encap, 0);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(send_one_sd_kernel(&cli, (uint16_t)i, 1 + i * 3000), 0);
		WAIT_FOR(s->messages == i + 1, &cn, &sn);
		cr_assert_eq(send_one_sd_kernel(s, (uint16_t)i, 1 + i * 3000), 0);
		WAIT_FOR(cli.messages == i + 1, &cn, &sn);
	}
	cr_expect(!cli.bad && !s->bad);
	cr_expect_eq(cli.ordered + s->ordered, 0);
	cr_expect_eq(cli.ppid, SEGMENT);
	cr_expect_eq(s->ppid, SEGMENT);
	cli.b->ask_dry(cli.a);
	s->b->ask_dry(s->a);
	WAIT_FOR(all_taken(&cli) && all_taken(s), &cn, &sn);
	cli.b->shutdown(cli.a);
	WAIT_FOR(cli.gone && s->gone, &cn, &sn);
	cr_expect_eq(cli.end.code, 0, "%s", cli.end.text);
	cr_expect_eq(s->end.code, 0, "%s", s->end.text);
	node_fini(&cn, cli.b);
	node_fini(&sn, s->b);
}

static void serve_a_client(const struct ddps_sd_backend *client)
{
	uint16_t port;

	need_sctp(true);
	port = kernel_udp_port();
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, B, AF_INET, 0, port), 0);
	cr_expect_eq(srv.encap, port);
	cr_assert_eq(try_connect(&cli, &cn, client, &srv.sa, srv.sa_len, port, 5000), 0);
	talk_sd_kernel();
}

static void be_served(const struct ddps_sd_backend *server)
{
	need_sctp(true);
	kernel_udp_port();
	node_init(&cn);
	node_init(&sn);
	cr_assert_eq(try_listen(&srv, &sn, server, AF_INET, 0, 0), 0);
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	talk_sd_kernel();
}

Test(sd_kernel, serves_a_client_of_our_engine)
{
	serve_a_client(&ddps_sd_native);
}

Test(sd_kernel, is_served_by_our_engine)
{
	be_served(&ddps_sd_native);
}

Test(sd_kernel, serves_a_usrsctp_client)
{
	serve_a_client(&peer_usrsctp);
}

Test(sd_kernel, is_served_by_usrsctp)
{
	be_served(&peer_usrsctp);
}

/* net.sctp.encap_port is what the kernel does if it is asked for nothing. */
Test(sd_kernel, off_is_directly_on_ip_whatever_the_system_says)
{
	need_sctp(true);
	kernel_udp_port();
	set_sd_kernel_up(AF_INET);
	cr_expect_eq(cli.info.encap, 0);
	cr_expect_eq(srv.peers[0].info.encap, 0);
	stop_sd_kernel();
}

Test(sd_kernel, encapsulation_that_the_kernel_does_not_do_is_refused)
{
	struct ddps_sd_assoc *none = NULL;

	need_sctp(true);
	node_init(&cn);
	cr_expect_eq(try_listen(&srv, &cn, B, AF_INET, 0, 3), DDPS_E_UNSUPPORTED);
	cr_expect_eq(cli.a, none);
	node_fini(&cn, B);
}

/* ---- messages in parts, for either backend ---- */

Test(sd_part, holds_parts_in_order)
{
	struct ddps_sd_part p = { 0 };
	uint8_t shared[16], *at;
	long live = mem_live();
	size_t room;

	at = ddps_sd_part_room(&p, shared, &room);
	cr_expect_eq(at, shared);
	cr_expect_eq(room, DDPS_SD_MSG_MAX);
	memcpy(at, "abc", 3);
	cr_assert_eq(ddps_sd_part_hold(&p, at, 3), 0);
	at = ddps_sd_part_room(&p, shared, &room);
	cr_expect_neq(at, shared);
	cr_expect_eq(room, DDPS_SD_MSG_MAX - 3);
	memcpy(at, "defg", 4);
	cr_assert_eq(ddps_sd_part_hold(&p, at, 4), 0);
	cr_expect_eq(p.len, 7);
	cr_expect_arr_eq(p.own, "abcdefg", 7);
	ddps_sd_part_drop(&p);
	cr_expect_null(p.own);
	cr_expect_eq(p.len, 0);
	cr_expect_eq(mem_live(), live);
}

Test(sd_part, without_memory_it_holds_nothing)
{
	struct ddps_sd_part p = { 0 };

	mem_fail(1);
	cr_expect_eq(ddps_sd_part_hold(&p, (const uint8_t *)"abc", 3), DDPS_E_NOMEM);
	cr_expect(mem_failed());
	cr_expect_null(p.own);
	cr_expect_eq(p.len, 0);
	cr_expect_eq(ddps_sd_part_hold(&p, (const uint8_t *)"abc", 3), 0);
	ddps_sd_part_drop(&p);
}

Test(sd_part, refuses_a_message_that_fills_the_buffer_without_end)
{
	struct ddps_sd_part p = { 0 };
	uint8_t *shared = calloc(1, DDPS_SD_MSG_MAX), *at;
	size_t room;

	cr_expect_eq(ddps_sd_part_hold(&p, shared, DDPS_SD_MSG_MAX), DDPS_E_PROTOCOL);
	cr_expect_null(p.own);
	cr_assert_eq(ddps_sd_part_hold(&p, shared, DDPS_SD_MSG_MAX - 2), 0);
	at = ddps_sd_part_room(&p, shared, &room);
	cr_expect_eq(room, 2);
	cr_expect_eq(ddps_sd_part_hold(&p, at, 2), DDPS_E_PROTOCOL);
	cr_assert_eq(ddps_sd_part_hold(&p, at, 1), 0);
	ddps_sd_part_drop(&p);
	free(shared);
}
