/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP inside DTLS, seen from the network: what leaves, what is answered, and what a bad network does to it. */
#include "sctp_ddp/backend/native/sd_dtls.h"
#include "sctp_ddp/sd_assoc.h"
#include "session/session.h"
#include "support/clock.h"
#include "support/e2e.h"
#include "support/rough.h"
#include <ddpsess/secure.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCTPS "sctps://127.0.0.1:0"

/* A dialler whose peer is the test: it says ClientHello, again and again, and nothing else. */
static ssize_t hear_hello(struct e2e *e, int fd, uint16_t port, uint8_t *hello, size_t size)
{
	char uri[64];
	ssize_t n;

	snprintf(uri, sizeof uri, "sctps://127.0.0.1:%u", port);
	cr_assert_eq(ddps_ep_new(e->ctx, &e->attr, &e->a.ep), 0);
	cr_assert_eq(ddps_connect(e->a.ep, uri, &e->connect), 0);
	n = rough_receive(e, fd, hello, size, E2E_MS);
	cr_assert(n > 60);
	return n;
}

Test(dtls, nothing_but_a_handshake_leaves_before_dtls_is_there, .timeout = 60,
     .description = "8261-6.1-1 8261-1-1")
{
	uint8_t hello[2048];
	uint16_t port;
	struct e2e e;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	hear_hello(&e, fd, port, hello, sizeof hello);
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(hello[0], 22, "type");
		cr_expect(hello[1] == 254 && !hello[3] && !hello[4], "version, epoch");
		cr_expect_eq(hello[13], 1, "ClientHello");
		cr_assert(rough_receive(&e, fd, hello, sizeof hello, E2E_MS) > 60);
	}
	e2e_close(&e);
	close(fd);
}

/* The dialler's own, from the first datagram on. */
Test(dtls, the_type_of_service_is_that_of_the_uri, .timeout = 60, .description = "8261-5-8")
{
	union {
		struct cmsghdr align;
		uint8_t b[64];
	} ctrl;
	uint8_t hello[2048], tos = 0;
	struct iovec iov = { hello, sizeof hello };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctrl,
			    .msg_controllen = sizeof ctrl };
	int one = 1, fd;
	uint16_t port;
	char uri[64];
	struct e2e e;

	fd = rough_udp(&port);
	cr_assert_eq(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof one), 0);
	e2e_open(&e, SCTPS);
	snprintf(uri, sizeof uri, "sctps://127.0.0.1:%u?tos=184", port);
	cr_assert_eq(ddps_ep_new(e.ctx, &e.attr, &e.a.ep), 0);
	cr_assert_eq(ddps_connect(e.a.ep, uri, &e.connect), 0);
	while (recvmsg(fd, &m, MSG_DONTWAIT) < 0)
		ddps_progress(e.ctx, 1);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			tos = *CMSG_DATA(c);
	cr_expect_eq(tos, 184);
	e2e_close(&e);
	close(fd);
}

/* Compression is not even offered: the ClientHello's list has the null method alone. */
Test(dtls, compression_is_not_offered, .timeout = 60, .description = "8261-5-3")
{
	uint8_t hello[2048];
	size_t at = 13 + 12 + 2 + 32; /* record, message, version, random */
	uint16_t port;
	struct e2e e;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	hear_hello(&e, fd, port, hello, sizeof hello);
	at += 1u + hello[at];				     /* session */
	at += 1u + hello[at];				     /* cookie */
	at += 2u + ((size_t)hello[at] << 8 | hello[at + 1]); /* suites */
	cr_expect(hello[at] == 1 && hello[at + 1] == 0);
	e2e_close(&e);
	close(fd);
}

static struct ddps_secured_stats get_secured(struct e2e *e)
{
	struct ddps_secured_stats st = { .struct_size = sizeof st };

	cr_assert_eq(ddps_ctx_secured_stats(e->ctx, &st), 0);
	return st;
}

/* Who has not proved that its address is its own gets less than it sent, and nothing is kept for it. */
Test(dtls, a_stranger_is_asked_for_a_cookie_and_nothing_is_kept, .timeout = 60,
     .description = "6347-4.2.1-1")
{
	uint8_t hello[2048], answer[2048];
	uint16_t port;
	struct e2e e;
	ssize_t n;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	n = hear_hello(&e, fd, port, hello, sizeof hello);
	close(fd);
	cr_expect_eq(get_secured(&e).cookies, 0);
	for (int i = 0; i < 200; i++) {
		ssize_t back;

		fd = rough_udp(&port);
		rough_aim(fd, e.uri);
		cr_assert_eq(send(fd, hello, (size_t)n, 0), n);
		back = rough_receive(&e, fd, answer, sizeof answer, E2E_MS);
		cr_assert(back > 0 && back < n);
		cr_expect_eq(answer[13], 3, "HelloVerifyRequest");
		close(fd);
	}
	cr_expect_eq(get_secured(&e).cookies, 200);
	e2e_close(&e);
}

/* What is no DTLS gets no answer, and the next session comes up. */
Test(dtls, plain_sctp_and_noise_are_not_answered, .timeout = 60, .description = "6347-4.1.2.7-1")
{
	uint8_t noise[1400], answer[64];
	uint16_t port;
	struct e2e e;
	int fd = rough_udp(&port);

	e2e_open(&e, SCTPS);
	rough_aim(fd, e.uri);
	for (unsigned i = 0; i < 300; i++) {
		e2e_fill(noise, sizeof noise, i);
		if (i % 3 == 0)
			noise[0] = (uint8_t)(20 + i % 6), noise[1] = 254, noise[2] = 253;
		if (i % 7 == 0) /* a plain INIT, but for its checksum */
			memset(noise + 4, 0, 4), noise[12] = 1, noise[15] = 20;
		cr_assert(send(fd, noise, 20 + i * 4, 0) > 0);
	}
	cr_expect_eq(rough_receive(&e, fd, answer, sizeof answer, 50), -1);
	close(fd);
	e2e_connect(&e);
	cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	e2e_close(&e);
}

/* ---- a network in between that does what it likes ---- */

Test(dtls, a_network_that_loses_repeats_swaps_and_changes_harms_nothing, .timeout = 120,
     .description = "6347-4.1.2.6-1 6347-4.1.2.7-1 6347-4.1.1-1")
{
	enum { N = 300 * 1024 };
	static uint8_t out[N], in[N];
	struct ddps_mr *mo, *mi;
	struct ddps_sge sge;
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	rough_begin(&r, &e, 11);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	e2e_fill(out, N, 5);
	cr_assert_eq(ddps_mr_reg(e.pd, out, N, 0, NULL, &mo), 0);
	cr_assert_eq(ddps_mr_reg(e.pd, in, N, DDPS_LOCAL_WRITE, NULL, &mi), 0);
	sge = e2e_sge(in, N, mi);
	for (int i = 0; i < 2 || (i < 60 && !(get_secured(&e).replayed && get_secured(&e).forged));
	     i++) {
		struct e2e_end *from = i % 2 ? &e.b : &e.a, *to = i % 2 ? &e.a : &e.b;

		memset(in, 0, N);
		cr_assert_eq(ddps_post_recv(to->ep, 0, &sge, 1), 0);
		cr_assert_eq(e2e_post(from, DDPS_OP_SEND, out, N, mo, 0, 0), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(&e).status, DDPS_WC_SUCCESS);
		cr_assert_arr_eq(in, out, N);
	}
	cr_expect(get_secured(&e).replayed > 0 && get_secured(&e).forged > 0);
	cr_expect_eq(get_secured(&e).renewed, 0);
	ddps_mr_dereg(mo);
	ddps_mr_dereg(mi);
	e2e_close(&e);
	rough_end(&r);
}

/* Nothing in a handshake is authentic before its end: alerts are not believed while the peer goes on, and a dial whose
 * handshake fails begins anew. */
Test(dtls, what_anybody_can_send_ends_no_set_up, .timeout = 60)
{
	static const struct {
		uint8_t what;
		bool to_listener;
		unsigned times;
	} forged[] = {
		{ DDPS_ALERT_INTERNAL_ERROR, false, 4 },
		{ DDPS_ALERT_INTERNAL_ERROR, true, 4 },
		{ DDPS_ALERT_UNKNOWN_CA, false, 4 },
		{ DDPS_ALERT_UNKNOWN_CA, true, 4 },
		{ ROUGH_NONSENSE, false, 8 },
		{ ROUGH_NONSENSE, true, 2 },
	};

	for (unsigned i = 0; i < sizeof forged / sizeof *forged; i++) {
		const bool alert = forged[i].what != ROUGH_NONSENSE;
		struct rough r;
		struct e2e e;

		e2e_open(&e, SCTPS);
		rough_begin_forger(&r, &e, forged[i].what, forged[i].to_listener, forged[i].times);
		e2e_connect(&e);
		cr_expect_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%u: %s", i, e.a.error.text);
		cr_expect(alert ? r.forges < forged[i].times : !r.forges, "%u", i);
		e2e_close(&e);
		rough_end(&r);
	}
}

/* ---- keys ---- */

/* A key seals so many records; then there is another one, and SCTP sees nothing of it. */
static void carry_under_many_keys(struct e2e *e, uint64_t keys)
{
	const uint64_t begun = read_clock_ms();
	enum { N = 200 * 1024 };
	static uint8_t out[N], in[N];
	struct ddps_mr *mo, *mi;
	struct ddps_sge sge;

	cr_assert_eq(ddps_mr_reg(e->pd, out, N, 0, NULL, &mo), 0);
	cr_assert_eq(ddps_mr_reg(e->pd, in, N, DDPS_LOCAL_WRITE, NULL, &mi), 0);
	sge = e2e_sge(in, N, mi);
	/* A handshake that loses a flight waits for its timer; the data does not. */
	for (unsigned i = 0; read_clock_ms() - begun < 90000 && get_secured(e).renewed < keys;
	     i++) {
		struct e2e_end *from = i & 1 ? &e->b : &e->a, *to = i & 1 ? &e->a : &e->b;

		e2e_fill(out, N, i);
		cr_assert_eq(ddps_post_recv(to->ep, 0, &sge, 1), 0);
		cr_assert_eq(e2e_post(from, DDPS_OP_SEND, out, N, mo, 0, 0), 0);
		for (int k = 0; k < 2; k++)
			cr_assert_eq(e2e_wc(e).status, DDPS_WC_SUCCESS);
		cr_assert_arr_eq(in, out, N);
	}
	cr_expect_geq(get_secured(e).renewed, keys);
	ddps_mr_dereg(mo);
	ddps_mr_dereg(mi);
}

static void renew_often(struct e2e *e)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sn_env *ne = prov->slot[0].ctx;

	ne->renew_at = 40;
}

Test(dtls, keys_are_made_anew_and_the_session_goes_on, .timeout = 120,
     .description = "6347-4.2.8-1")
{
	struct e2e e;

	e2e_open(&e, SCTPS);
	renew_often(&e);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	carry_under_many_keys(&e, 12);
	e2e_close(&e);
}

Test(dtls, keys_are_made_anew_over_a_bad_network, .timeout = 120)
{
	struct rough r;
	struct e2e e;

	e2e_open(&e, SCTPS);
	renew_often(&e);
	rough_begin(&r, &e, 17);
	e2e_connect(&e);
	cr_assert_eq(e.a.seen, E2E_SEEN(DDPS_EV_ESTABLISHED), "%s", e.a.error.text);
	carry_under_many_keys(&e, 6);
	e2e_close(&e);
	rough_end(&r);
}

/* ---- the end ---- */

/* The listener's connection says close_notify, as a peer does that forgets SCTP's SHUTDOWN. */
static void end_dtls_alone(struct e2e *e)
{
	struct ddps_sd_provider *prov = e->ctx->env.sctp;
	struct ddps_sn_env *ne = prov->slot[0].ctx;
	unsigned n = 0;

	for (unsigned i = 0; i < ne->nsocks; i++) {
		if (!ne->socks[i] || !ne->socks[i]->dtls || !ne->socks[i]->dtls->server)
			continue;
		ddps_sn_dtls_alert(ne->socks[i]->dtls, DDPS_ALERT_CLOSE_NOTIFY);
		n++;
	}
	cr_assert_eq(n, 1);
}

/* Only SCTP's own end says that nothing is missing: 0, the session is open; 1, this side has closed it; 2, and
 * waits for what the peer may still send. */
Test(dtls, close_notify_before_the_end_of_the_association_is_no_end_in_order, .timeout = 60)
{
	for (int i = 0; i < 3; i++) {
		struct e2e e;

		e2e_up(&e, SCTPS);
		if (i == 2)
			cr_assert_eq(ddps_post_recv(e.a.ep, 0, NULL, 0), 0);
		if (i)
			cr_assert_eq(ddps_disconnect(e.a.ep), 0);
		end_dtls_alone(&e);
		e2e_wait(&e, &e.a, E2E_SEEN(DDPS_EV_CLOSED));
		cr_expect_eq(e.a.error.code, DDPS_E_RESET, "%d: %s", i, e.a.error.text);
		cr_expect(strstr(e.a.error.text, "data may be missing"), "%s", e.a.error.text);
		e2e_close(&e);
	}
}

/* ---- who ---- */

Test(dtls, both_ends_know_who_the_other_is, .timeout = 60)
{
	struct ddps_peer_id id = { .struct_size = sizeof id };
	struct e2e e;

	e2e_up(&e, SCTPS);
	for (int i = 0; i < 2; i++) {
		memset(&id, 0, sizeof id);
		id.struct_size = sizeof id;
		cr_assert_eq(ddps_ep_peer_id(i ? e.b.ep : e.a.ep, &id), 0);
		cr_expect_eq(id.how, DDPS_PEER_X509);
		cr_expect_str_eq(id.version, "DTLS 1.2");
		cr_expect_str_eq(id.suite, "AES-128-GCM");
		cr_expect(id.name[0]);
	}
	e2e_close(&e);
}

Test(dtls, without_keys_it_is_refused_with_the_reason, .timeout = 60)
{
	struct ddps_listener *l;
	struct ddps_ctx *ctx;

	cr_assert_eq(ddps_ctx_new(&ctx, NULL), 0);
	cr_expect_eq(ddps_listen(ctx, SCTPS, NULL, &l), DDPS_E_NO_CERT);
	ddps_ctx_free(ctx);
}

/* It never shares a UDP port with plain SCTP, and each endpoint has its own. */
Test(dtls, a_udp_port_has_one_listener_inside_dtls_and_none_besides, .timeout = 60)
{
	struct ddps_listener *l;
	char uri[80];
	struct e2e e;
	unsigned port;

	e2e_open(&e, SCTPS);
	cr_expect(ddps_listen(e.ctx, e.uri, NULL, &l) < 0);
	cr_assert_eq(sscanf(strrchr(e.uri, ':'), ":%u", &port), 1);
	snprintf(uri, sizeof uri, "sctp://127.0.0.1:9?encap=%u", port);
	cr_expect(ddps_listen(e.ctx, uri, NULL, &l) < 0);
	snprintf(uri, sizeof uri, "sctps://127.0.0.1:9?encap=%u", port);
	cr_expect(ddps_listen(e.ctx, uri, NULL, &l) < 0);
	e2e_close(&e);
}
