/* SPDX-License-Identifier: BSD-2-Clause */
/* How much an association of the kernel's SCTP moves before others have their turn.  Its socket is one
 * of another kind, which the system has in any case: it takes messages, and that is enough. */
#include "sctp_ddp/backend/kernel/sd_kernel.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sd_backend_fixture.h"
#include <unistd.h>

#define B	(&ddps_sd_kernel)
#define SEGMENT 16u

static struct node cn, sn;

/* Else a program that keeps a queue of completions full never has the loop look after others. */
Test(sd_kernel_turn, what_it_moves_counts_for_the_turn_of_others)
{
	static uint8_t octets[65536];
	const struct iovec iov = { octets, sizeof octets };
	struct ddps_sk_env from = { .env = &cn.env, .rx_buf = malloc(DDPS_SD_MSG_MAX) };
	struct ddps_sk_env to = { .env = &sn.env, .rx_buf = malloc(DDPS_SD_MSG_MAX) };
	struct ddps_sd_assoc a = { .ke = &from, .life.announced = true }, b = { .ke = &to };
	int fd[2];

	node_init(&cn);
	node_init(&sn);
	/* Messages, which is enough; what SCTP would say of them is passed over. */
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	a.io.fd = fd[0];
	b.io.fd = fd[1];
	for (size_t n = 0; n < DDPS_SPENT_MOST; n += sizeof octets) {
		cr_expect(!ddps_loop_due(cn.env.loop) && !ddps_loop_due(sn.env.loop));
		cr_assert_eq(B->send(&a, 0, SEGMENT, &iov, 1), 0);
		cr_assert_eq(ddps_sk_take(&b).len, sizeof octets);
	}
	cr_expect(ddps_loop_due(cn.env.loop), "the sender's");
	cr_expect(ddps_loop_due(sn.env.loop), "the receiver's");
	close(fd[0]);
	close(fd[1]);
	free(from.rx_buf);
	free(to.rx_buf);
	node_fini(&cn, B);
	node_fini(&sn, B);
}

/* A program that keeps its queue of completions full has 4 MiB written between two of them. */
Test(sd_kernel_turn, a_turn_reads_as_much_as_there_is_not_as_many_messages)
{
	uint8_t octet = 0;
	struct ddps_sk_env ke = { .env = &cn.env, .rx_buf = malloc(DDPS_SD_MSG_MAX) };
	struct ddps_sd_assoc a = { .ke = &ke, .life.announced = true };
	unsigned sent = 0;
	int fd[2];

	node_init(&cn);
	a.life.env = &cn.env;
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
	a.io.fd = fd[0];
	a.io.fn = (void (*)(void *, uint32_t))abort;
	while (sent < 1000 && send(fd[1], &octet, 1, MSG_DONTWAIT | MSG_EOR) == 1)
		sent++;
	cr_assert_gt(sent, 64);
	ddps_sk_serve(&a, EPOLLIN);
	cr_expect_eq(a.octets, sent); /* as parts: such a socket reports no end of a message */
	ddps_sd_part_drop(&a.life.part);
	ddps_sk_close(&a);
	close(fd[1]);
	free(ke.rx_buf);
	node_fini(&cn, B);
}
