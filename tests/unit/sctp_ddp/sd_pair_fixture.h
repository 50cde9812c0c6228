/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_PAIR_FIXTURE_H
#define SD_PAIR_FIXTURE_H
/* Two contexts and one association between them, in UDP: two native ends, or one and a stranger. */
#include "peer/usrsctp.h"
#include "sctp_ddp/backend/sd_part.h"
#include "sd_backend_fixture.h"
#include <errno.h>

#define SEGMENT 16u
#define CONTROL 17u
#define WHOLE	64000u /* octets that fit into one packet of the loopback interface */

static const struct ddps_sd_backend *CB = &ddps_sd_native, *SB = &ddps_sd_native;
static struct node cn, sn; /* client's and server's contexts */
static struct server srv;
static struct side cli;

static inline void use_sd_pair(const struct ddps_sd_backend *client,
			       const struct ddps_sd_backend *server)
{
	CB = client;
	SB = server;
}

/* A test between two of ours ... */
#define ON_NATIVE(name, ...)                                                                       \
	static void name##_on(void);                                                               \
	Test(sd_native, name, ##__VA_ARGS__)                                                       \
	{                                                                                          \
		use_sd_pair(&ddps_sd_native, &ddps_sd_native);                                     \
		name##_on();                                                                       \
	}                                                                                          \
	static void name##_on(void)

/* ... and with a stranger at either end. */
#define ON_ALL(name, ...)                                                                          \
	static void name##_on(void);                                                               \
	Test(sd_native_to_usrsctp, name, ##__VA_ARGS__)                                            \
	{                                                                                          \
		use_sd_pair(&ddps_sd_native, &peer_usrsctp);                                       \
		name##_on();                                                                       \
	}                                                                                          \
	Test(sd_usrsctp_to_native, name, ##__VA_ARGS__)                                            \
	{                                                                                          \
		use_sd_pair(&peer_usrsctp, &ddps_sd_native);                                       \
		name##_on();                                                                       \
	}                                                                                          \
	ON_NATIVE(name, ##__VA_ARGS__)

static inline void start_sd_pair(int family)
{
	node_init(&cn);
	node_init(&sn);
	cli = (struct side){ 0 };
	cr_assert_eq(try_listen(&srv, &sn, SB, family, 0, 0), 0, "errno %d", errno);
}

/* Both know what the path takes: a backend may have to find out. */
static inline bool widened(void)
{
	cli.b->info(cli.a, &cli.info);
	srv.peers[0].b->info(srv.peers[0].a, &srv.peers[0].info);
	return cli.info.max_user_data >= WHOLE && srv.peers[0].info.max_user_data >= WHOLE;
}

static inline void connect_up(void)
{
	cr_assert_eq(try_connect(&cli, &cn, CB, &srv.sa, srv.sa_len, srv.encap, 5000), 0);
	WAIT_FOR(cli.up + cli.gone && srv.accepted, &cn, &sn);
	cr_assert_eq(cli.gone, 0, "%s", cli.end.text);
}

static inline void set_sd_pair_up(int family)
{
	start_sd_pair(family);
	connect_up();
}

static inline void stop_sd_pair(void)
{
	node_fini(&cn, CB);
	node_fini(&sn, SB);
	free(cli.last);
	for (int i = 0; i < MAX_PEERS; i++)
		free(srv.peers[i].last);
}

static inline int send_one_sd_pair(struct side *s, uint16_t stream, uint32_t ppid, size_t len)
{
	uint8_t *p = malloc(len);
	struct iovec iov[3] = { { p, len / 3 },
				{ p + len / 3, 0 },
				{ p + len / 3, len - len / 3 } };
	int err;

	fill_sd_backend(p, len, stream);
	err = s->b->send(s->a, stream, ppid, iov, 3);
	free(p);
	s->handed += !err;
	if (s->b->flush)
		s->b->flush(s->a);
	return err;
}

/* All that @s handed over is acknowledged; after ask_sd_pair(). */
static inline void ask_sd_pair(struct side *s)
{
	s->b->ask_dry(s->a);
}

static inline bool is_sd_pair_acknowledged(const struct side *s)
{
	return s->b->acks ? s->acked == s->handed : s->dry;
}

#endif
