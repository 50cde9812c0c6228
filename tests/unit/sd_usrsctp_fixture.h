/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_USRSCTP_FIXTURE_H
#define SD_USRSCTP_FIXTURE_H
/* Two contexts and one association between them, on the usrsctp backend. */
#include "sctp_ddp/backend/sd_usrsctp.h"
#include "sd_backend_fixture.h"
#include <errno.h>

#define B	(&ddps_sd_usrsctp)
#define SEGMENT 16u
#define CONTROL 17u

static struct node cn, sn; /* client's and server's contexts */
static struct server srv;
static struct side cli;

static inline void start(int family)
{
	node_init(&cn);
	node_init(&sn);
	cli = (struct side){ 0 };
	cr_assert_eq(try_listen(&srv, &sn, B, family, 0, 0), 0, "errno %d", errno);
}

static inline void connect_up(void)
{
	cr_assert_eq(try_connect(&cli, &cn, B, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up + cli.gone && srv.accepted, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
}

static inline void set_up(int family)
{
	start(family);
	connect_up();
}

static inline void stop(void)
{
	node_fini(&cn, B);
	node_fini(&sn, B);
	free(cli.last);
	for (int i = 0; i < MAX_PEERS; i++)
		free(srv.peers[i].last);
}

static inline int send_one(struct side *s, uint16_t stream, uint32_t ppid, size_t len)
{
	uint8_t *p = malloc(len);
	struct iovec iov[3] = { { p, len / 3 },
				{ p + len / 3, 0 },
				{ p + len / 3, len - len / 3 } };
	int err;

	fill(p, len, stream);
	err = B->send(s->a, stream, ppid, iov, 3);
	free(p);
	return err;
}

static inline struct sctpstat stats(void)
{
	struct sctpstat st;

	usrsctp_get_stat(&st);
	return st;
}

#endif
