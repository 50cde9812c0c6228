/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams from somebody who is no queue pair: every octet that can be wrong. */
#include "verbs/vud.h"
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* docs/verbs.md, octet by octet. */
static size_t make_verbs_ud_attack_datagram(uint8_t *d, uint32_t dest, uint32_t src, uint32_t qkey,
					    const char *data)
{
	uint32_t n[3] = { htonl(dest), htonl(src), htonl(qkey) };

	memset(d, 0, 28);
	memcpy(d, "ddUD\1\1", 6);
	memcpy(d + 8, n, sizeof n);
	memcpy(d + 28, data, strlen(data));
	return 28 + strlen(data);
}

static int forger(uint16_t *port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	socklen_t len = sizeof a4;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a4, sizeof a4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a4, &len), 0);
	*port = ntohs(a4.sin_port);
	return fd;
}

static void forge_verbs_ud_attack(int fd, uint16_t port, const uint8_t *d, size_t len)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(sendto(fd, d, len, 0, (struct sockaddr *)&a4, sizeof a4), (ssize_t)len);
}

/* Until so many were found wrong; nothing completes meanwhile. */
static void expect_verbs_ud_attack_refused(struct vud_qp *q, uint64_t n)
{
	struct ibv_wc wc;

	while (vud_stats().malformed + vud_stats().bad_qkey < n)
		cr_assert_eq(ibv_poll_cq(q->cq, 1, &wc), 0);
	cr_expect_eq(vud_stats().malformed + vud_stats().bad_qkey, n);
}

Test(verbs_ud_attack, what_is_no_datagram_of_a_queue_pair_is_dropped, .timeout = 30)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} wrong[] = { { 0, 'D' }, { 3, 0 },    { 4, 0 },    { 4, 2 },	 { 5, 0 },
		      { 5, 2 },	  { 5, 3 },    { 5, 4 },    { 5, 255 },	 { 6, 8 },
		      { 6, 128 }, { 7, 1 },    { 8, 1 },    { 9, 0 },	 { 10, 0 },
		      { 12, 1 },  { 14, 255 }, { 15, 255 }, { 16, 0xff } };
	uint8_t d[2048], good[2048];
	struct vud_qp q;
	struct vud v;
	struct ibv_wc wc;
	uint64_t n = 0;
	uint16_t own;
	int fd = forger(&own);
	uint32_t src = 0xf00000u | own;
	size_t len;

	vud_open(&v);
	vud_up(&v, &q);
	vud_recv(&q, 1, 0, 2000);
	len = make_verbs_ud_attack_datagram(good, q.qp->qp_num, src, VUD_QKEY, "octets");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		memcpy(d, good, len);
		/* The forger's port may have it already. */
		d[wrong[i].at] = good[wrong[i].at] == wrong[i].value ? (uint8_t)(wrong[i].value ^ 1)
								     : wrong[i].value;
		forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, d, len);
		expect_verbs_ud_attack_refused(&q, ++n);
	}
	for (size_t cut = 0; cut < 28; cut++) {
		forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, good, cut);
		expect_verbs_ud_attack_refused(&q, ++n);
	}
	/* Longer than the MTU, by one octet and by many. */
	memcpy(d, good, 28);
	forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, d, 28 + 1025);
	expect_verbs_ud_attack_refused(&q, ++n);
	forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, d, 2048);
	expect_verbs_ud_attack_refused(&q, ++n);
	/* As it should be, from whoever has the port that its number says. */
	forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, good, len);
	wc = vud_wc(&q);
	cr_expect_eq(wc.status, 0);
	cr_expect_eq(wc.src_qp, src);
	cr_expect_eq(wc.byte_len, 46);
	cr_expect_eq(q.buf[8 + 10], 0xff, "the GRH has the address that it came from");
	cr_expect_eq(q.buf[8 + 12], 127);
	cr_expect_arr_eq(q.buf + 40, "octets", 6);
	close(fd);
	vud_down(&q);
	vud_close(&v);
}

/* Acknowledgements of nothing change nothing, and are no way to more octets than were sent. */
Test(verbs_ud_attack, acknowledgements, .timeout = 30)
{
	struct sockaddr_in from;
	socklen_t fromlen = sizeof from;
	uint8_t d[64];
	struct vud_qp q;
	struct vud v;
	uint16_t own;
	int fd = forger(&own);
	uint32_t src = 0xf00000u | own;
	size_t len;

	vud_open(&v);
	vud_up(&v, &q);
	vud_recv(&q, 1, 0, 2000);
	len = make_verbs_ud_attack_datagram(d, q.qp->qp_num, src, VUD_QKEY, "");
	d[6] = 4; /* asks for one */
	d[24] = 0x12;
	d[25] = 0x34;
	d[26] = (uint8_t)(own >> 8);
	d[27] = (uint8_t)own;
	forge_verbs_ud_attack(fd, (uint16_t)q.qp->qp_num, d, len);
	cr_expect_eq(vud_wc(&q).status, 0);
	len = (size_t)recvfrom(fd, d, sizeof d, 0, (struct sockaddr *)&from, &fromlen);
	cr_expect_eq(len, 28);
	cr_expect_arr_eq(d, "ddUD\1\2\0\0", 8);
	cr_expect_arr_eq(d + 24, "\x12\x34\0\0", 4);
	cr_expect_eq(ntohs(from.sin_port), (uint16_t)q.qp->qp_num);
	/* An unrequested one, of a queue pair that is there, and of none. */
	make_verbs_ud_attack_datagram(d, q.qp->qp_num, src, 0, "");
	d[5] = 2;
	forge_verbs_ud_attack(fd, ud_of_process()->ack_port, d, 28);
	make_verbs_ud_attack_datagram(d, 0xf00001, src, 0, "");
	d[5] = 2;
	forge_verbs_ud_attack(fd, ud_of_process()->ack_port, d, 28);
	d[5] = 1;
	forge_verbs_ud_attack(fd, ud_of_process()->ack_port, d, 28);
	expect_verbs_ud_attack_refused(&q, 1);
	vud_recv(&q, 2, 0, 100);
	vud_send(&q, 3, &q, 1, 0);
	cr_expect_eq(vud_wc(&q).status, 0);
	cr_expect_eq(vud_wc(&q).status, 0);
	close(fd);
	vud_down(&q);
	vud_close(&v);
}

/*
 * A listener answers whoever seems to have asked.  Somebody with another one's address gets it no more
 * octets than were sent: a request is as long as the longest answer, or it is none.
 */
Test(verbs_ud_attack, attack_3_an_answer_is_no_longer_than_its_request, .timeout = 30)
{
	static const char longest[UD_PD_REP] = "refused at length";
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	struct rdma_cm_id *listen, *asked;
	struct rdma_cm_event *e;
	uint8_t d[UD_HEADER + UD_PD_REQ] = "ddUD\1\3", got[512];
	uint16_t own, port;
	int fd = forger(&own);

	a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(rdma_create_id(ch, &listen, NULL, RDMA_PS_UDP), 0);
	cr_assert_eq(rdma_bind_addr(listen, (struct sockaddr *)&a4), 0);
	cr_assert_eq(rdma_listen(listen, 4), 0, "%m");
	port = ntohs(rdma_get_src_port(listen));
	for (size_t len = UD_HEADER; len < UD_HEADER + UD_PD_REP; len++)
		forge_verbs_ud_attack(fd, port, d, len);
	forge_verbs_ud_attack(fd, port, d, UD_HEADER + UD_PD_REP + 1);
	d[15] = 1; /* another one, and what is known first is this */
	forge_verbs_ud_attack(fd, port, d, UD_HEADER + UD_PD_REP);
	e = vt_event(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	asked = e->id;
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_reject(asked, longest, sizeof longest), 0, "%m");
	for (int again = 0; again < 3; again++) {
		cr_expect_eq(recv(fd, got, sizeof got, 0), UD_HEADER + UD_PD_REP);
		cr_expect_eq(got[15], 1);
		forge_verbs_ud_attack(fd, port, d, UD_HEADER + UD_PD_REP);
	}
	cr_expect_not(vt_readable(ch->fd, 50));
	cr_expect_eq(rdma_destroy_id(asked), 0);
	cr_expect_eq(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(ch);
	close(fd);
}

/* A peer that acknowledges nothing slows its sender down, and does not stop it. */
Test(verbs_ud_attack, who_does_not_acknowledge_is_not_waited_for, .timeout = 30)
{
	struct ibv_send_wr wr, *bad;
	struct vud_qp q;
	struct vud v;
	uint16_t silent;
	int fd = forger(&silent);

	vud_open(&v);
	vud_up(&v, &q);
	wr = vud_wr(&q, 0, &q, NULL, 0);
	wr.wr.ud.remote_qpn = 0xf00000u | silent;
	wr.wr.ud.ah = vud_ah(&v, "127.0.0.1");
	for (unsigned i = 0; i < 1000; i++) {
		wr.wr_id = i;
		cr_assert_eq(ibv_post_send(q.qp, &wr, &bad), 0);
		cr_assert_eq(vud_wc(&q).wr_id, i);
	}
	cr_expect_eq(ibv_destroy_ah(wr.wr.ud.ah), 0);
	close(fd);
	vud_down(&q);
	vud_close(&v);
}

/* It goes while datagrams come, and while its own wait. */
Test(verbs_ud_attack, a_queue_pair_goes_in_the_midst_of_traffic, .timeout = 30)
{
	uint8_t d[128];
	struct vud v;
	uint16_t own;
	int fd = forger(&own);

	vud_open(&v);
	for (int round = 0; round < 20; round++) {
		struct vud_qp a, b;
		size_t len;

		vud_up(&v, &a);
		vud_up(&v, &b);
		vud_recv(&b, 1, 0, 2000);
		len = make_verbs_ud_attack_datagram(d, b.qp->qp_num, 0xf00000u | own, VUD_QKEY,
						    "x");
		for (int i = 0; i < 50; i++) {
			forge_verbs_ud_attack(fd, (uint16_t)b.qp->qp_num, d, len);
			vud_send(&a, 0, &b, 1000, 0);
		}
		cr_assert_eq(ibv_req_notify_cq(b.cq, 0), 0);
		vud_down(&b);
		vud_down(&a);
	}
	close(fd);
	vud_close(&v);
}

/* More peers than are remembered. */
Test(verbs_ud_attack, many_peers, .timeout = 30)
{
	struct ibv_send_wr wr, *bad;
	struct vud_qp q;
	struct vud v;

	vud_open(&v);
	vud_up(&v, &q);
	wr = vud_wr(&q, 0, &q, NULL, 0);
	for (unsigned i = 0; i < 3 * UD_PEERS; i++) {
		wr.wr.ud.remote_qpn = 0xf00001u + i;
		cr_assert_eq(ibv_post_send(q.qp, &wr, &bad), 0);
		cr_expect_eq(vud_wc(&q).status, 0);
	}
	vud_recv(&q, 2, 0, 100);
	vud_send(&q, 3, &q, 1, 0);
	cr_expect_eq(vud_wc(&q).status, 0);
	cr_expect_eq(vud_wc(&q).status, 0);
	vud_down(&q);
	vud_close(&v);
}
