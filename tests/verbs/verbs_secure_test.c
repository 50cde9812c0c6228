/* SPDX-License-Identifier: BSD-2-Clause */
/* DDPSESS_TRANSPORT=tls and sctps: what rdma_cm connects is secured, and all else is refused.  Each test
 * in a process of its own that has the site's keys. */
#include "verbs/vchild.h"
#include "verbs/voob.h"
#include "verbs/vsite.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

#define HOST "cert host.pem\nkey host.key\nca ca.pem\n"

/* The same over both wires. */
#define SECURE_TEST(name)                                                                          \
	static void name##_over(const char *wire);                                                 \
	Test(verbs_secure, name##_over_tls, .timeout = 60)                                         \
	{                                                                                          \
		name##_over("tls");                                                                \
	}                                                                                          \
	Test(verbs_secure, name##_over_sctps, .timeout = 60)                                       \
	{                                                                                          \
		name##_over("sctps");                                                              \
	}                                                                                          \
	static void name##_over(const char *wire)

static struct vsite site;
static struct vt v;

/* ---- all is well ---- */

static void exchange_words(struct vt_end *from, struct vt_end *to)
{
	strcpy((char *)from->buf, "what nobody else reads");
	memset(to->buf, 0, sizeof to->buf);
	cr_assert_eq(vt_recv(to, 1, 0, 64), 0);
	cr_assert_eq(vt_post(from, 2, IBV_WR_SEND, 64, NULL), 0);
	vt_expect_wc(to, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_expect_wc(from, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	cr_expect_str_eq((char *)to->buf, "what nobody else reads");
}

static void part_in_order(struct vt *p)
{
	cr_expect_eq(rdma_disconnect(p->a.id), 0);
	vt_expect(p->a.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_expect(p->b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(p);
}

static void run_pair(void)
{
	vt_init(&v);
	vt_up(&v);
	exchange_words(&v.a, &v.b);
	exchange_words(&v.b, &v.a);
	memset(v.a.buf, 7, sizeof v.a.buf);
	cr_assert_eq(vt_post(&v.a, 3, IBV_WR_RDMA_WRITE, sizeof v.a.buf, &v.b), 0);
	vt_expect_wc(&v.a, 3, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	cr_expect_eq(v.b.buf[sizeof v.b.buf - 1], 7);
	memset(v.b.buf, 8, sizeof v.b.buf);
	cr_assert_eq(vt_post(&v.a, 4, IBV_WR_RDMA_READ, sizeof v.a.buf, &v.b), 0);
	vt_expect_wc(&v.a, 4, IBV_WC_RDMA_READ, IBV_WC_SUCCESS);
	cr_expect_eq(v.a.buf[sizeof v.a.buf - 1], 8);
	part_in_order(&v);
}

static void expect_pair(const char *wire, const char *lines)
{
	vsite_make(&site);
	vsite_use(&site, wire, lines);
	vsite_hear();
	run_pair();
	vsite_expect_said("ddpsess", 0);
	vsite_remove(&site);
}

SECURE_TEST(certificates_of_one_site)
{
	expect_pair(wire, HOST);
}

SECURE_TEST(a_pre_shared_key)
{
	expect_pair(wire, "psk a.psk\n");
}

/* Programs dial addresses, and this one is in no certificate of the list. */
SECURE_TEST(a_list_of_expected_names)
{
	expect_pair(wire, "cert node.pem\nkey node.key\nca ca.pem\npeer dns:node-b,dns:node-a\n");
}

SECURE_TEST(a_list_of_those_who_are_allowed)
{
	expect_pair(wire, HOST "peers allow.txt\n");
}

/* ---- somebody else listens ---- */

/* How it is called where it is plain. */
static const char *get_plain_wire(const char *wire)
{
	return !strcmp(wire, "tls") ? "tcp" : "sctp";
}

static void expect_refused_dial(int error)
{
	struct rdma_cm_event *e;

	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_CONNECT_ERROR);
	cr_expect_eq(e->status, -error, "status %d", e->status);
	rdma_ack_cm_event(e);
	vt_end_down(&v.a);
}

/* @own and @peer: lines of settings; NULL: a plain peer. */
static void expect_wrong_peer(const char *wire, const char *own, const char *peer, int error,
			      const char *said)
{
	struct vpeer p;

	vsite_make(&site);
	vsite_use(&site, wire, own);
	vt_init(&v);
	vpeer_open(&p, &site, peer);
	vpeer_listen(&p, peer ? wire : get_plain_wire(wire), &v);
	vsite_hear();
	expect_refused_dial(error);
	vsite_expect_said("ddpsess: queue pair ", 1);
	vsite_expect_said(said, 1);
	vpeer_close(&p);
	vt_down(&v);
	vsite_remove(&site);
}

SECURE_TEST(a_wrong_ca)
{
	expect_wrong_peer(wire, HOST, "cert stranger.pem\nkey stranger.key\nca ca.pem\n", EACCES,
			  "which no CA in");
}

SECURE_TEST(a_wrong_name)
{
	expect_wrong_peer(wire, HOST, "cert node.pem\nkey node.key\nca ca.pem\n", EACCES,
			  "the peer is not 'ip:127.0.0.1' but has dns:node-a");
}

SECURE_TEST(a_peer_that_is_not_on_the_list)
{
	expect_wrong_peer(wire, HOST "peers deny.txt\n", HOST, EACCES,
			  "deny.txt:1 denies the peer");
}

SECURE_TEST(a_peer_that_has_this_side_not_on_its_list)
{
	expect_wrong_peer(wire, HOST, HOST "peers deny.txt\n", EACCES, "the peer refused");
}

SECURE_TEST(a_wrong_pre_shared_key)
{
	expect_wrong_peer(wire, "psk wrong.psk\n", "psk a.psk\n", EACCES, "PSK identity 'a'");
}

SECURE_TEST(certificates_here_and_a_pre_shared_key_there)
{
	expect_wrong_peer(wire, HOST, "psk a.psk\n", EPROTO, "nothing in common");
}

/* Inside DTLS the peer would be silent, as a listener of DTLS is to strangers. */
Test(verbs_secure, an_unknown_identity_over_tls, .timeout = 60)
{
	expect_wrong_peer("tls", "psk a.psk\n", "psk b.psk\n", EACCES,
			  "the peer refused the PSK identity 'a'");
}

/* MPA does not answer TLS: it ends the connection. */
Test(verbs_secure, a_plain_peer_over_tls, .timeout = 60)
{
	struct vpeer p;

	vsite_make(&site);
	vsite_use(&site, "tls", HOST);
	vt_init(&v);
	vpeer_open(&p, &site, NULL);
	vpeer_listen(&p, "tcp", &v);
	vsite_hear();
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_REJECTED);
	vsite_expect_said("ddpsess: queue pair ", 1);
	vt_end_down(&v.a);
	vpeer_close(&p);
	vt_down(&v);
	vsite_remove(&site);
}

/* The other way round: a side without keys says that the peer has some. */
SECURE_TEST(a_secured_peer_of_a_plain_side)
{
	const bool tls = !strcmp(wire, "tls");
	struct vpeer p;

	vsite_make(&site);
	setenv("DDPSESS_TRANSPORT", get_plain_wire(wire), 1);
	vt_init(&v);
	vpeer_open(&p, &site, HOST);
	vpeer_listen(&p, wire, &v);
	vsite_hear();
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_expect(v.a.ch, tls ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_UNREACHABLE);
	vsite_expect_said(tls ? "the peer speaks TLS: use tls://" : "and not on sctps://?", 1);
	vt_end_down(&v.a);
	vpeer_close(&p);
	vt_down(&v);
	vsite_remove(&site);
}

/* ---- somebody else dials ---- */

static void expect_stranger_refused(const char *wire, const char *lines, const char *said)
{
	struct vpeer stranger, friend;

	vsite_make(&site);
	vsite_use(&site, wire, HOST);
	vt_init(&v);
	vt_listen(&v);
	vsite_hear();
	vpeer_open(&stranger, &site, lines);
	vpeer_dial(&stranger, lines ? wire : get_plain_wire(wire), &v);
	if (lines)
		cr_expect_eq(vpeer_event(&stranger).type, DDPS_EV_FAILED);
	vpeer_open(&friend, &site, HOST);
	vpeer_dial(&friend, wire, &v);
	vt_take_request(&v); /* the friend's */
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(vpeer_event(&friend).type, DDPS_EV_ESTABLISHED);
	cr_expect(!vt_readable(v.b.ch->fd, 0), "the stranger's request came, too");
	vsite_expect_said(said, 1);
	vpeer_close(&stranger);
	vpeer_close(&friend);
	vt_down(&v);
	vsite_remove(&site);
}

SECURE_TEST(a_stranger_asks_a_listener)
{
	expect_stranger_refused(wire, "cert stranger.pem\nkey stranger.key\nca ca.pem\n",
				"ddpsess: secure: refused 127.0.0.1:");
}

SECURE_TEST(somebody_plain_asks_a_listener)
{
	expect_stranger_refused(wire, NULL, "ddpsess: secure: refused 127.0.0.1:");
}

/* ---- what is not secured ---- */

static void ask_for_datagrams(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_id *id;
	struct vt_dev d;

	vt_dev_open(&d);
	init.send_cq = init.recv_cq = d.cq;
	VT_NULL_AS(ibv_create_qp(d.pd, &init), EOPNOTSUPP);
	VT_MINUS_AS(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), EOPNOTSUPP);
	vt_dev_close(&d);
	rdma_destroy_event_channel(ch);
}

static void connect_own_way(void)
{
	struct side a, b;

	open_oob_side(&a);
	open_oob_side(&b);
	cr_expect_eq(move_oob_to_rtr(a.qp, b.qp->qp_num, &b.gid), EOPNOTSUPP);
	cr_expect_eq(move_oob_to_rtr(b.qp, b.qp->qp_num, &b.gid), EOPNOTSUPP, "its own peer");
	close_oob_side(&a);
	close_oob_side(&b);
}

/* Such a queue pair may be an identifier's later. */
static void lend_one(void)
{
	struct rdma_conn_param conn;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;
	struct vt_dev d;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	rdma_destroy_qp(v.a.id);
	vt_dev_open(&d);
	init = vt_rc(&d);
	qp = ibv_create_qp(d.pd, &init);
	cr_assert_not_null(qp);
	conn = v.connect;
	conn.qp_num = qp->qp_num;
	cr_assert_eq(rdma_connect(v.a.id, &conn), 0, "%m");
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	vt_dev_close(&d);
	vt_down(&v);
}

static void expect_told_once(const char *wire, void (*live)(void), const char *said)
{
	vsite_make(&site);
	vsite_use(&site, wire, HOST);
	vsite_hear();
	live();
	if (said)
		vsite_expect_said(said, 1);
	vsite_expect_said("ddpsess", said ? 1 : 0);
	vsite_remove(&site);
}

SECURE_TEST(datagrams_are_refused)
{
	expect_told_once(wire, ask_for_datagrams, ": datagrams (queue pairs of type UD");
}

SECURE_TEST(queue_pairs_of_the_program_s_own_are_refused)
{
	expect_told_once(wire, connect_own_way,
			 ": a queue pair that the program connects itself is refused");
}

SECURE_TEST(queue_pairs_that_rdma_cm_borrows_are_secured)
{
	expect_told_once(wire, lend_one, NULL);
}

/* ---- processes and threads ---- */

static void fork_and_go_on(void)
{
	int status;
	pid_t child;

	vt_init(&v);
	vt_up(&v);
	exchange_words(&v.a, &v.b);
	child = fork_at_rest();
	if (!child) {
		struct vt own;

		cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 64, NULL), EINVAL);
		vt_init(&own);
		vt_up(&own);
		exchange_words(&own.a, &own.b);
		part_in_order(&own);
		leave_child_fixture(0);
	}
	status = await_child_status(child);
	cr_expect_eq(status, 0, "%#x", status);
	exchange_words(&v.b, &v.a);
	part_in_order(&v);
}

SECURE_TEST(a_child_of_fork_has_keys_and_no_connection_of_its_parent)
{
	expect_told_once(wire, fork_and_go_on, NULL);
}

static void *open_first(void *arg)
{
	pthread_barrier_wait(arg);
	return rdma_create_event_channel();
}

static void open_by_two(void)
{
	pthread_barrier_t both;
	pthread_t thread[2];
	void *ch;

	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, open_first, &both), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &ch);
		cr_assert_not_null(ch);
		rdma_destroy_event_channel(ch);
	}
	run_pair();
}

SECURE_TEST(two_threads_at_first_use)
{
	expect_told_once(wire, open_by_two, NULL);
}

/* ---- the end ---- */

static uint16_t get_port(const struct sockaddr_storage *ss)
{
	return ntohs(ss->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)ss)->sin6_port
					       : ((const struct sockaddr_in *)ss)->sin_port);
}

/* A peer has accepted what is dialled, or the other way round: the wire is taken away from it by @cut. */
static void lose_peer(const char *wire, void (*cut)(uint16_t listens))
{
	struct vpeer peer;

	vt_init(&v);
	vt_listen(&v);
	vpeer_open(&peer, &site, HOST);
	vpeer_dial(&peer, wire, &v);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_expect_eq(vpeer_event(&peer).type, DDPS_EV_ESTABLISHED);
	cut(get_port(&v.addr));
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_down(&v);
	vpeer_close(&peer);
}

/* The system says of each connection that its other end has nothing more to say. */
static void end_streams(uint16_t listens)
{
	struct sockaddr_storage ss;

	(void)listens;
	for (int fd = 0; fd < 1024; fd++) {
		socklen_t len = sizeof ss;

		if (!getpeername(fd, (struct sockaddr *)&ss, &len) && ss.ss_family == AF_INET)
			shutdown(fd, SHUT_WR);
	}
}

/* The dialler's socket is gone, without a word of TLS or SCTP; TCP says reset. */
static void close_dialler(uint16_t listens)
{
	const struct linger reset = { 1, 0 };
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_storage own, peer;
		socklen_t len = sizeof own, plen = sizeof peer;
		bool tcp;

		if (getsockname(fd, (struct sockaddr *)&own, &len) ||
		    (own.ss_family != AF_INET && own.ss_family != AF_INET6) ||
		    get_port(&own) == listens)
			continue;
		tcp = !getpeername(fd, (struct sockaddr *)&peer, &plen);
		if (tcp && get_port(&peer) != listens)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		n += dup2(nothing, fd) == fd;
	}
	cr_expect_geq(n, 1);
	close(nothing);
}

static void end_without_close_notify(void)
{
	lose_peer("tls", end_streams);
}

static void reset_stream(void)
{
	lose_peer("tls", close_dialler);
}

static void vanish_from_datagrams(void)
{
	lose_peer("sctps", close_dialler);
}

/* The peer goes without close_notify, as one that was killed or cut off. */
Test(verbs_secure, an_end_without_close_notify_is_reported, .timeout = 60)
{
	expect_told_once("tls", end_without_close_notify, "close_notify");
}

/* Nothing is under way: on a plain wire a reset would be as good an end as any. */
Test(verbs_secure, a_reset_is_reported_over_tls, .timeout = 60)
{
	expect_told_once("tls", reset_stream, "ddpsess: queue pair ");
}

Test(verbs_secure, a_peer_that_vanishes_is_reported_over_sctps, .timeout = 120)
{
	expect_told_once("sctps", vanish_from_datagrams, "ddpsess: queue pair ");
}
