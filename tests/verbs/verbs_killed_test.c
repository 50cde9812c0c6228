/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that is killed at each step of the set-up, and peers that send what is no protocol. */
#include "support/child.h"
#include "verbs/vt.h"
#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a peer that is killed ---- */

/* Over TCP, where the system informs the peer: over SCTP a peer that says nothing is noticed by its
 * silence, which takes longer.  The child rests there until it is killed. */
static void stop_if(bool here)
{
	if (here)
		raise(SIGSTOP);
}

/* The passive end, which gets as far as @step. */
static void serve_until(int step, int tell)
{
	uint16_t port;
	struct vt v;

	vt_init(&v);
	vt_listen(&v);
	port = htons(vt_port(&v));
	if (write(tell, &port, sizeof port) != sizeof port)
		_exit(1);
	stop_if(step == 0);
	vt_take_request(&v);
	stop_if(step == 1);
	cr_assert_eq(vt_recv(&v.b, 1, 0, 8192), 0);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	stop_if(step == 2);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	stop_if(step == 3);
	vt_expect_wc(&v.b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
	stop_if(true);
	_exit(0);
}

static void await_stop(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status), "%#x", status);
}

/* Whatever is reported, it is reported, and work comes back. */
static void await_killed_end(struct vt_end *e, bool posted)
{
	struct rdma_cm_event *ev;
	bool up = false, over = false;

	while (!over) {
		cr_assert(vt_readable(e->ch->fd, VT_MS), "%s", up ? "no end" : "nothing is told");
		cr_assert_eq(rdma_get_cm_event(e->ch, &ev), 0);
		up = up || ev->event == RDMA_CM_EVENT_ESTABLISHED;
		over = ev->event == RDMA_CM_EVENT_DISCONNECTED ||
		       ev->event == RDMA_CM_EVENT_CONNECT_ERROR ||
		       ev->event == RDMA_CM_EVENT_REJECTED ||
		       ev->event == RDMA_CM_EVENT_UNREACHABLE;
		cr_assert(over || ev->event == RDMA_CM_EVENT_ESTABLISHED, "%s",
			  rdma_event_str(ev->event));
		cr_expect_eq(ev->event == RDMA_CM_EVENT_DISCONNECTED, up && over);
		rdma_ack_cm_event(ev);
	}
	if (posted)
		cr_expect_eq(vt_wc(e).status, IBV_WC_WR_FLUSH_ERR);
}

static void kill_server(int step)
{
	uint16_t port;
	int tell[2];
	struct vt v;
	pid_t pid;

	cr_assert_eq(pipe(tell), 0);
	pid = fork_at_rest();
	if (!pid)
		serve_until(step, tell[1]);
	close(tell[1]);
	cr_assert_eq(read(tell[0], &port, sizeof port), sizeof port);
	vt_init(&v);
	((struct sockaddr_in *)&v.addr)->sin_port = port;
	vt_dial(&v);
	cr_assert_eq(vt_recv(&v.a, 1, 0, 8192), 0);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	if (step > 3) {
		vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
		cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 8192, NULL), 0);
		vt_expect_wc(&v.a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	}
	await_stop(pid);
	no_child(pid);
	if (step > 3) {
		vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
		cr_expect_eq(vt_wc(&v.a).status, IBV_WC_WR_FLUSH_ERR);
	} else {
		await_killed_end(&v.a, true);
	}
	close(tell[0]);
	vt_down(&v);
}

Test(verbs_killed, a_server_is_killed_at_each_step, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	setenv("DDPSESS_RETRY_MS", "0", 1);
	for (int step = 0; step <= 4; step++)
		kill_server(step);
}

/* The active end, which gets as far as @step. */
static void dial_until(int step, int port_from)
{
	struct vt v;

	vt_init(&v);
	if (read(port_from, &((struct sockaddr_in *)&v.addr)->sin_port, 2) != 2)
		_exit(1);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	if (step >= 1)
		vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	if (step >= 2)
		for (int i = 0; i < 8; i++)
			cr_assert_eq(vt_post(&v.a, 2, IBV_WR_SEND, 8192, NULL), 0);
	stop_if(true);
	_exit(0);
}

static void kill_client(int step)
{
	struct rdma_cm_event *e;
	int to[2];
	struct vt v;
	pid_t pid;

	cr_assert_eq(pipe(to), 0);
	pid = fork_at_rest();
	if (!pid) {
		close(to[1]);
		dial_until(step, to[0]);
	}
	vt_init(&v);
	vt_listen(&v);
	cr_assert_eq(write(to[1], &((struct sockaddr_in *)&v.addr)->sin_port, 2), 2);
	vt_take_request(&v);
	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 8192), 0);
	if (step >= 1)
		cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	await_stop(pid);
	no_child(pid);
	/* Whoever accepts a peer that is gone learns of it by one way or the other. */
	if (step >= 1 || !rdma_accept(v.b.id, &v.accept))
		await_killed_end(&v.b, step < 2);
	/* The listener serves others. */
	vt_end_down(&v.b);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	while (!v.b.id) {
		e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		v.b.id = e->id;
		rdma_ack_cm_event(e);
	}
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	close(to[0]);
	close(to[1]);
	vt_down(&v);
}

Test(verbs_killed, a_client_is_killed_at_each_step, .timeout = 60)
{
	setenv("DDPSESS_TRANSPORT", "tcp", 1);
	for (int step = 0; step <= 2; step++)
		kill_client(step);
}

/* ---- a peer that sends what is no protocol ---- */

#define STRANGERS 200

static uint32_t seed;

static uint32_t draw_killed_step(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* Octets that begin well as far as @well, and are anything from there on. */
static size_t garbage(uint8_t *buf, size_t room, const char *like, size_t like_len)
{
	const size_t len = 1 + draw_killed_step((uint32_t)room),
		     well = draw_killed_step((uint32_t)like_len + 1);

	for (size_t i = 0; i < len; i++)
		buf[i] = i < well ? (uint8_t)like[i] : (uint8_t)draw_killed_step(256);
	return len;
}

/* MPA Requests and what follows them; SCTP packets in UDP. */
static void annoy(const struct vt *v, bool sctp, int *held)
{
	static const char mpa[] = "MPA ID Req Frame\x40\2\0\4\0\1\0\1";
	static const char packet[] = "\x13\x88\x13\x88\0\0\0\0\0\0\0\0\1\0\0\x14\0\0\0\1";
	const int type = sctp ? SOCK_DGRAM : SOCK_STREAM;
	uint8_t buf[600];
	size_t len = sctp ? garbage(buf, sizeof buf, packet, sizeof packet - 1)
			  : garbage(buf, sizeof buf, mpa, sizeof mpa - 1);

	*held = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	cr_assert_geq(*held, 0);
	cr_assert_eq(connect(*held, (const struct sockaddr *)&v->addr, sizeof(struct sockaddr_in)),
		     0);
	if (send(*held, buf, len, MSG_NOSIGNAL) < 0)
		cr_assert(errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED, "%m");
	if (draw_killed_step(2)) {
		close(*held);
		*held = -1;
	}
}

/* More than come: none has to ask again a second later. */
static void listen_for_many(struct vt *v)
{
	v->b.ch = rdma_create_event_channel();
	cr_assert_not_null(v->b.ch);
	cr_assert_eq(rdma_create_id(v->b.ch, &v->listen, v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v->listen, (struct sockaddr *)&v->addr), 0);
	cr_assert_eq(rdma_listen(v->listen, 4 * STRANGERS), 0, "%m");
	((struct sockaddr_in *)&v->addr)->sin_port = rdma_get_src_port(v->listen);
}

VT_TLS_TEST(verbs_killed, strangers_do_no_harm_to_a_listener)
{
	const bool sctp = !strcmp(getenv("DDPSESS_TRANSPORT"), "sctp");
	static int held[STRANGERS];
	struct rdma_cm_event *e;
	struct vt v;

	seed = 17;
	vt_init(&v);
	listen_for_many(&v);
	for (int i = 0; i < STRANGERS; i++)
		annoy(&v, sctp, &held[i]);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	/* A stranger's request that is well-formed by chance is one, too. */
	while (!v.b.id) {
		e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		if (sctp || rdma_get_dst_port(e->id) == rdma_get_src_port(v.a.id))
			v.b.id = e->id;
		else
			rdma_reject(e->id, NULL, 0);
		rdma_ack_cm_event(e);
	}
	vt_equip(&v, &v.b);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (int i = 0; i < STRANGERS; i++)
		if (held[i] >= 0)
			close(held[i]);
	vt_down(&v);
}

/* ---- memory that goes while a peer reads it ---- */

#define LARGE (1 << 20)
#define READS 16

VT_TLS_TEST(verbs_killed, memory_goes_while_a_peer_reads_it)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	void *from = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *to = calloc(1, LARGE);
	struct ibv_mr *source, *sink;
	unsigned good = 0;
	struct vt v;

	cr_assert(from != MAP_FAILED && to);
	vt_init(&v);
	vt_up(&v);
	source = ibv_reg_mr(v.b.id->pd, from, LARGE, access);
	sink = ibv_reg_mr(v.a.id->pd, to, LARGE, access);
	cr_assert(source && sink);
	for (int i = 0; i < READS; i++) {
		struct ibv_sge sge = { (uintptr_t)to, LARGE, sink->lkey };
		struct ibv_send_wr wr = { .wr_id = (uint64_t)i,
					  .opcode = IBV_WR_RDMA_READ,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .wr.rdma = { (uintptr_t)from, source->rkey } },
				   *bad;

		cr_assert_eq(ibv_post_send(v.a.id->qp, &wr, &bad), 0);
	}
	cr_assert_eq(vt_wc(&v.a).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_dereg_mr(source), 0);
	cr_assert_eq(munmap(from, LARGE), 0);
	for (int i = 1; i < READS; i++) {
		struct ibv_wc wc = vt_wc(&v.a);

		cr_expect_eq(wc.wr_id, (uint64_t)i);
		cr_expect(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR ||
				  wc.status == IBV_WC_WR_FLUSH_ERR,
			  "%s", ibv_wc_status_str(wc.status));
		good += wc.status == IBV_WC_SUCCESS;
	}
	/* On a fast wire all may have been answered by then. */
	if (good < READS - 1) {
		vt_expect(v.a.ch, RDMA_CM_EVENT_DISCONNECTED);
		vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	}
	cr_assert_eq(ibv_dereg_mr(sink), 0);
	vt_down(&v);
	free(to);
}

/* ---- requests that wait for others to leave with (docs/verbs.md) are never lost ---- */

#define SENDS 5

/* Sends and ends, without ever looking at a completion. */
static _Noreturn void send_and_exit(int port)
{
	struct vt v;

	vt_init(&v);
	if (read(port, &((struct sockaddr_in *)&v.addr)->sin_port, 2) != 2)
		_exit(1);
	vt_dial(&v);
	if (rdma_connect(v.a.id, &v.connect))
		_exit(1);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (uint64_t i = 0; i < SENDS; i++)
		if (vt_post(&v.a, i, IBV_WR_SEND, 64, NULL))
			_exit(1);
	close(STDERR_FILENO); /* what is not freed is nobody's concern here */
	exit(0);
}

VT_TLS_TEST(verbs_gather, what_was_posted_leaves_before_the_process)
{
	int port[2], status;
	struct vt v;
	pid_t pid;

	cr_assert_eq(pipe(port), 0);
	pid = fork();
	if (!pid) {
		close(port[1]);
		send_and_exit(port[0]);
	}
	vt_init(&v);
	vt_listen(&v);
	cr_assert_eq(write(port[1], &(uint16_t){ htons(vt_port(&v)) }, 2), 2);
	vt_take_request(&v);
	for (uint64_t i = 0; i < SENDS; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	for (uint64_t i = 0; i < SENDS; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	close(port[0]);
	close(port[1]);
	vt_down(&v);
}

/* Of a list those before the one that is refused are posted, and leave though nobody looks. */
VT_TLS_TEST(verbs_gather, a_list_that_is_refused_halfway_leaves_so_far)
{
	struct ibv_send_wr wr[3] = { 0 }, *bad = NULL;
	struct ibv_cq *cq;
	struct vt v;
	void *user;

	vt_init(&v);
	vt_up(&v);
	for (uint64_t i = 0; i < 2; i++)
		cr_assert_eq(vt_recv(&v.b, i, 0, 64), 0);
	for (unsigned i = 0; i < 3; i++) {
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = -1;
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_neq(ibv_post_send(v.a.id->qp, wr, &bad), 0);
	cr_expect_eq(bad, &wr[2]);
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	for (uint64_t i = 0; i < 2; i++)
		vt_expect_wc(&v.b, i, IBV_WC_RECV, IBV_WC_SUCCESS);
	vt_down(&v);
}
