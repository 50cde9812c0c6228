/* SPDX-License-Identifier: BSD-2-Clause */
/* Rough handling by other processes: children of fork, and a peer that is killed. */
#include "support/child.h"
#include "verbs/vt.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- fork ---- */

static void still_works(struct vt *v)
{
	cr_assert_eq(vt_recv(&v->b, 1, 0, 64), 0);
	cr_assert_eq(vt_post(&v->a, 2, IBV_WR_SEND, 5, NULL), 0);
	vt_expect_wc(&v->a, 2, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v->b, 1, IBV_WC_RECV, IBV_WC_SUCCESS);
}

static int status_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* How many descriptors a program finds that this process starts. */
static unsigned descriptors_of_a_program(void)
{
	unsigned lines = 0;
	int out[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		execl("/bin/ls", "ls", "/proc/self/fd", (char *)NULL);
		_exit(1);
	}
	close(out[1]);
	while (read(out[0], &c, 1) == 1)
		lines += c == '\n';
	close(out[0]);
	cr_assert_eq(status_of(pid), 0);
	return lines;
}

VT_TLS_TEST(verbs_rough, a_program_that_is_started_inherits_nothing)
{
	unsigned before = descriptors_of_a_program();
	struct vt v;

	cr_assert_gt(before, 2);
	vt_init(&v);
	cr_assert_eq(ibv_fork_init(), 0);
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_RDMA_WRITE, 64, &v.b), 0);
	cr_expect_eq(descriptors_of_a_program(), before);
	vt_expect_wc(&v.a, 9, IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS);
	still_works(&v);
	vt_down(&v);
}

/* A child's calls on what is its parent's fail, and none of them harms the parent. */
static int meddle(struct vt *v)
{
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	if (ibv_poll_cq(v->a.cq, 1, &wc) > 0 || !vt_recv(&v->b, 5, 0, 64) ||
	    !vt_post(&v->a, 5, IBV_WR_SEND, 5, NULL))
		return 2;
	if (!rdma_disconnect(v->a.id) || !ibv_modify_qp(v->b.id->qp, &err, IBV_QP_STATE) ||
	    !ibv_req_notify_cq(v->a.cq, 0))
		return 3;
	rdma_destroy_qp(v->a.id);
	if (!rdma_destroy_id(v->listen) || !ibv_destroy_cq(v->a.cq))
		return 4;
	return 0;
}

VT_TLS_TEST(verbs_rough, a_child_cannot_harm_its_parent)
{
	struct vt v;
	pid_t pid;

	vt_init(&v);
	vt_up(&v);
	pid = fork_at_rest();
	if (!pid)
		_exit(meddle(&v));
	cr_expect_eq(status_of(pid), 0);
	still_works(&v);
	cr_expect(!vt_readable(v.a.ch->fd, 0) && !vt_readable(v.b.ch->fd, 0), "nothing happened");
	vt_down(&v);
}

/* What runs at exit is the parent's business: nothing is shut down, nobody waits for it. */
VT_TLS_TEST(verbs_rough, a_child_that_exits_leaves_its_parent_alone)
{
	struct vt v;
	pid_t pid;

	vt_init(&v);
	vt_up(&v);
	cr_assert_eq(vt_post(&v.a, 9, IBV_WR_SEND, 64, NULL), 0); /* finds no receive yet */
	pid = fork_at_rest();
	if (!pid) {
		close(STDERR_FILENO); /* LeakSanitizer wonders about threads that are not there */
		exit(0);
	}
	cr_assert(WIFEXITED(status_of(pid)));
	cr_assert_eq(vt_recv(&v.b, 3, 0, 64), 0);
	vt_expect_wc(&v.a, 9, IBV_WC_SEND, IBV_WC_SUCCESS);
	vt_expect_wc(&v.b, 3, IBV_WC_RECV, IBV_WC_SUCCESS);
	still_works(&v);
	vt_down(&v);
}

/* ---- a process that is killed in the midst of it ---- */

struct where {
	uint64_t addr;
	uint32_t rkey;
};

static struct where mine(const struct vt_end *e)
{
	return (struct where){ (uintptr_t)e->buf, e->mr->rkey };
}

static void write_in_child(struct vt_end *e, uint64_t wr_id, const struct where *to)
{
	static const enum ibv_wr_opcode op[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct ibv_sge sge = { (uintptr_t)e->buf, 4096, e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op[wr_id & 1],
				  .wr.rdma = { to->addr, to->rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(e->id->qp, &wr, &bad), 0);
}

/* Writes and reads until it is killed. */
static void until_killed(int port)
{
	struct rdma_cm_event *e;
	struct where own, to;
	struct vt v;

	vt_init(&v);
	if (read(port, &((struct sockaddr_in *)&v.addr)->sin_port, 2) != 2)
		_exit(1);
	vt_dial(&v);
	own = mine(&v.a);
	v.connect.private_data = &own;
	v.connect.private_data_len = sizeof own;
	if (rdma_connect(v.a.id, &v.connect))
		_exit(1);
	e = vt_event(v.a.ch, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&to, e->param.conn.private_data, sizeof to);
	for (uint64_t i = 0;; i++) {
		if (i >= 8)
			vt_wc(&v.a);
		write_in_child(&v.a, i, &to);
	}
}

static void accept_from(struct vt *v, struct where *peer)
{
	struct rdma_cm_event *e = vt_event(v->b.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct where own;

	memcpy(peer, e->param.conn.private_data, sizeof *peer);
	v->b.id = e->id;
	rdma_ack_cm_event(e);
	vt_equip(v, &v->b);
	own = mine(&v->b);
	v->accept.private_data = &own;
	v->accept.private_data_len = sizeof own;
	cr_assert_eq(rdma_accept(v->b.id, &v->accept), 0);
	vt_expect(v->b.ch, RDMA_CM_EVENT_ESTABLISHED);
}

VT_TLS_TEST(verbs_rough, a_peer_is_killed_in_the_midst_of_a_transfer)
{
	struct where peer;
	unsigned bad = 0;
	uint64_t next = 0;
	int port[2];
	struct vt v;
	pid_t pid;

	vt_init(&v);
	cr_assert_eq(pipe(port), 0);
	pid = fork();
	if (!pid) {
		close(port[1]);
		until_killed(port[0]);
	}
	vt_listen(&v);
	cr_assert_eq(write(port[1], &((struct sockaddr_in *)&v.addr)->sin_port, 2), 2);
	accept_from(&v, &peer);
	for (; next < 8; next++)
		write_in_child(&v.b, next, &peer);
	for (uint64_t got = 0; got < next; got++) {
		struct ibv_wc wc = vt_wc(&v.b);

		if (got == 40) /* by now data goes both ways */
			kill(pid, SIGKILL);
		cr_assert_eq(wc.wr_id, got, "every request comes back, in order");
		cr_assert(!bad || wc.status == IBV_WC_WR_FLUSH_ERR);
		bad += wc.status != IBV_WC_SUCCESS;
		if (!bad)
			write_in_child(&v.b, next++, &peer);
	}
	cr_expect_gt(bad, 0);
	vt_expect(v.b.ch, RDMA_CM_EVENT_DISCONNECTED);
	cr_expect_eq(WTERMSIG(status_of(pid)), SIGKILL);
	write_in_child(&v.b, 99, &peer);
	vt_expect_wc(&v.b, 99, IBV_WC_RDMA_READ, IBV_WC_WR_FLUSH_ERR);
	close(port[0]);
	close(port[1]);
	vt_down(&v);
}
