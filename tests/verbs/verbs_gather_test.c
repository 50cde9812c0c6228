/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that wait for others to leave with (docs/verbs.md) are never lost. */
#include "verbs/vt.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
