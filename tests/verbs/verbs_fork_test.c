/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork that go on living next to a parent that uses the drop-in. */
#include "verbs/vchild.h"
#include "verbs/vt.h"
#include <errno.h>
#include <stdlib.h>

/* Listens at a port that it prints, rejects one request and ends by the shortest way. */
static void reject_and_end(int tell)
{
	struct rdma_cm_event *e;
	struct vt v;
	uint16_t port;

	vt_init(&v);
	vt_listen(&v);
	port = vt_port(&v);
	if (write(tell, &port, sizeof port) != sizeof port)
		_exit(1);
	e = vt_event(v.b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	_exit(rdma_reject(e->id, "no thanks", 10) != 0);
}

VT_TLS_TEST(verbs_fork, a_rejection_is_out_before_the_process_ends)
{
	struct rdma_cm_event *e;
	struct vt v;
	uint16_t port;
	int tell[2];
	pid_t child;

	cr_assert_eq(pipe(tell), 0);
	child = fork();
	if (!child)
		reject_and_end(tell[1]);
	close(tell[1]); /* the child's alone: a read ends when it does */
	cr_assert_eq(read(tell[0], &port, sizeof port), sizeof port);
	vt_init(&v);
	((struct sockaddr_in *)&v.addr)->sin_port = htons(port);
	vt_dial(&v);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_REJECTED);
	cr_assert_not_null(e->param.conn.private_data);
	cr_expect_str_eq(e->param.conn.private_data, "no thanks");
	rdma_ack_cm_event(e);
	vt_down(&v);
	cr_expect_eq(await_child_status(child), 0);
	close(tell[0]);
}

VT_TLS_TEST(verbs_fork, attack_12_what_the_parent_destroys_is_gone)
{
	struct vt v, again;
	pid_t child;

	vt_init(&v);
	vt_up(&v);
	child = idle_child();
	rdma_destroy_qp(v.a.id);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	vt_init(&again);
	again.addr = v.addr; /* with the port */
	vt_down(&v);
	vt_listen(&again);
	vt_down(&again);
	no_child(child);
}

/* Bound before the fork, listening after it. */
VT_TLS_TEST(verbs_fork, attack_12_a_kept_port_is_the_parents)
{
	struct vt v;
	pid_t child;

	vt_init(&v);
	v.b.ch = rdma_create_event_channel();
	cr_assert_eq(rdma_create_id(v.b.ch, &v.listen, &v, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(v.listen, (struct sockaddr *)&v.addr), 0);
	child = idle_child();
	cr_expect_eq(rdma_listen(v.listen, 4), 0, "%m");
	vt_down(&v);
	no_child(child);
}

static bool is_verbs_fork_refused(int ret)
{
	return ret == -1 && errno == EINVAL;
}

/* With events in all three kinds of channels. */
static int eat(struct vt *v)
{
	struct ibv_async_event a;
	struct rdma_cm_event *e;
	struct ibv_cq *cq;
	void *user;

	if (!is_verbs_fork_refused(ibv_get_cq_event(v->b.cc, &cq, &user)))
		return 1;
	if (!is_verbs_fork_refused(rdma_get_cm_event(v->a.ch, &e)))
		return 2;
	if (!is_verbs_fork_refused(ibv_get_async_event(v->b.id->verbs, &a)))
		return 3;
	return 0;
}

VT_TLS_TEST(verbs_fork, attack_12_a_child_eats_no_events)
{
	struct vt v;
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1, .srq_limit = 0 } };
	struct ibv_srq_attr low = { .srq_limit = 2 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_async_event e;
	struct ibv_cq *cq;
	void *user;
	pid_t pid;

	vt_init(&v);
	vt_listen(&v);
	vt_dial(&v);
	v.srq = ibv_create_srq(v.a.id->pd, &srq);
	cr_assert_not_null(v.srq);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ibv_post_srq_recv(v.srq, &wr, &bad), 0);
	cr_assert_eq(rdma_connect(v.a.id, &v.connect), 0);
	vt_take_request(&v);
	cr_assert_eq(rdma_accept(v.b.id, &v.accept), 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(ibv_modify_srq(v.srq, &low, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(ibv_req_notify_cq(v.b.cq, 0), 0);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 0, NULL), 0);
	cr_assert(vt_readable(v.b.cc->fd, VT_MS));
	cr_assert(vt_readable(v.a.ch->fd, VT_MS)); /* ESTABLISHED */
	cr_assert(vt_readable(v.b.id->verbs->async_fd, VT_MS));
	pid = fork();
	if (!pid)
		_exit(eat(&v));
	cr_expect_eq(await_child_status(pid), 0);
	cr_expect(vt_readable(v.b.cc->fd, 0) && vt_readable(v.a.ch->fd, 0) &&
		  vt_readable(v.b.id->verbs->async_fd, 0));
	cr_assert_eq(ibv_get_cq_event(v.b.cc, &cq, &user), 0);
	ibv_ack_cq_events(cq, 1);
	vt_expect(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	e = vt_async(v.b.id->verbs, IBV_EVENT_SRQ_LIMIT_REACHED);
	ibv_ack_async_event(&e);
	vt_down(&v);
}

/* Of the tests themselves: it would wait for Criterion's runner for ever. */
Test(verbs_fork, an_assertion_that_fails_in_a_child_ends_it, .timeout = 20)
{
	const int fd = vchild_file("");
	char text[1024] = "";
	int status;
	pid_t child = fork();

	if (!child) {
		dup2(fd, STDERR_FILENO);
		cr_assert_eq(fd, -1, "as meant");
		leave_child_fixture(0);
	}
	status = await_child_status(child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_FAILED, "%#x", status);
	cr_assert_gt(pread(fd, text, sizeof text - 1, 0), 0);
	cr_expect(strstr(text, "as meant"), "%s", text);
	close(fd);
}
