/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP between dialler and listener. */
#include "support/rough.h"
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int rough_udp(uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

void rough_aim(int fd, const char *uri)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned port;

	cr_assert_eq(sscanf(strrchr(uri, ':'), ":%u", &port), 1);
	a.sin_port = htons((uint16_t)port);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
}

ssize_t rough_receive(struct e2e *e, int fd, void *buf, size_t size, unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		ssize_t n = recv(fd, buf, size, MSG_DONTWAIT);

		if (n >= 0)
			return n;
		ddps_progress(e->ctx, 1);
	}
	return -1;
}

/* Another socket in the place of the one towards the listener: what goes to that is lost. */
static void find_another_port(struct rough *r)
{
	struct sockaddr_in to;
	socklen_t len = sizeof to;
	uint16_t port;
	int fd = rough_udp(&port);

	cr_assert_eq(getpeername(r->out, (struct sockaddr *)&to, &len), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, len), 0);
	close(r->out);
	r->out = fd;
	r->moved++;
}

/* At ServerHello both ends are in the midst of it: an alert, or a message that is none, from nobody. */
static void forge_record(struct rough *r, const uint8_t *b, ssize_t n,
			 const struct sockaddr_storage *dialler, socklen_t len)
{
	const bool alert = r->forgery != ROUGH_NONSENSE;
	const uint8_t type = r->to_listener ? 11 : 2, nr = r->to_listener ? 2 : 1;
	const uint8_t level[] = { 21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 99, 0, 2, 2, r->forgery };
	const uint8_t nonsense[] = { 22, 254, 253, 0,  0, 0, 0, 0, 0, 0, 99, 0, 16, type, 0,
				     0,	 4,   0,   nr, 0, 0, 0, 0, 0, 4, 1,  2, 3,  4 };
	const uint8_t *p = alert ? level : nonsense;
	const size_t size = alert ? sizeof level : sizeof nonsense;

	if (!r->forges || n < 14 || b[0] != 22 || b[13] != 2)
		return;
	r->forges--;
	if (r->to_listener)
		send(r->out, p, size, 0);
	else
		sendto(r->in, p, size, 0, (const struct sockaddr *)dialler, len);
}

/* New keys begin: a ClientHello, alone or behind a record of data. */
static bool has_hello(const uint8_t *b, size_t n)
{
	const size_t at = b[0] == 23 && n > 13 ? 13 + ((size_t)b[11] << 8 | b[12]) : 0;

	return n > at + 13 && b[at] == 22 && b[at + 13] == 1;
}

/* The dialler's datagram is that after which the NAT finds another port. */
static bool is_time_to_move(const struct rough *r, const uint8_t *b, size_t n, unsigned *dialled)
{
	if (r->moved == r->moves)
		return false;
	if (!r->move_after)
		return *dialled && has_hello(b, n);
	if (*dialled < r->move_after)
		return false;
	*dialled = 0;
	return true;
}

/* Of @every datagrams one is lost, one comes twice, one has a bit that is changed, one comes after the next. */
static void *run_rough(void *user)
{
	struct sockaddr_storage from = { 0 };
	static uint8_t b[65536], kept[65536];
	ssize_t nkept = 0;
	struct rough *r = user;
	socklen_t len = 0;
	unsigned nr = 0, dialled = 0;

	while (!r->stop) {
		struct pollfd p[2] = { { r->in, POLLIN, 0 }, { r->out, POLLIN, 0 } };

		if (poll(p, 2, 20) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			socklen_t flen = sizeof from;
			bool bad = r->every && ++nr % r->every == 0;
			unsigned how = bad ? nr / r->every % 4 : 0;
			ssize_t n;

			if (!(p[i].revents & POLLIN))
				continue;
			n = i ? recv(r->out, b, sizeof b, MSG_DONTWAIT)
			      : recvfrom(r->in, b, sizeof b, MSG_DONTWAIT, (struct sockaddr *)&from,
					 &flen);
			if (n <= 0)
				continue;
			if (!i)
				len = flen;
			dialled += !i && b[0] == 23;
			if (!i && is_time_to_move(r, b, (size_t)n, &dialled))
				find_another_port(r);
			if (i)
				forge_record(r, b, n, &from, len);
			if (!i && b[0] == 23 && r->thief)
				send(r->thief, b, (size_t)n, 0);
			if (!i && r->mute && b[0] != 23) {
				memcpy(kept, b, (size_t)n);
				nkept = n;
			} else if (!i && r->mute) {
				memcpy(b, kept, (size_t)nkept);
				n = nkept;
			}
			if (bad && how == 0)
				continue;
			/* a handshake that is changed fails, and may: UDP has a checksum */
			if (bad && how == 1 && b[0] == 23)
				b[n / 2] ^= 4;
			if (bad && how == 2 && !nkept && !i) {
				memcpy(kept, b, (size_t)n);
				nkept = n;
				continue;
			}
			for (int k = bad && how == 3 ? 2 : 1; k; k--) {
				if (i && len)
					sendto(r->in, b, (size_t)n, 0, (struct sockaddr *)&from,
					       len);
				else if (!i)
					send(r->out, b, (size_t)n, 0);
			}
			if (nkept && !i && !r->mute) {
				send(r->out, kept, (size_t)nkept, 0);
				nkept = 0;
			}
		}
	}
	return NULL;
}

static void begin_between(struct rough *r, struct e2e *e)
{
	uint16_t port;

	r->in = rough_udp(&r->port);
	r->out = rough_udp(&port);
	rough_aim(r->out, e->uri);
	cr_assert_eq(pthread_create(&r->thread, NULL, run_rough, r), 0);
	snprintf(e->uri, sizeof e->uri, "sctps://127.0.0.1:%u?encap=%u",
		 (unsigned)strtoul(strrchr(e->uri, ':') + 1, NULL, 10), r->port);
}

void rough_begin(struct rough *r, struct e2e *e, unsigned every)
{
	*r = (struct rough){ .every = every };
	begin_between(r, e);
}

void rough_begin_nat(struct rough *r, struct e2e *e, unsigned move_after, unsigned moves)
{
	*r = (struct rough){ .move_after = move_after, .moves = moves };
	begin_between(r, e);
}

void rough_begin_thief(struct rough *r, struct e2e *e)
{
	uint16_t port;

	*r = (struct rough){ .thief = rough_udp(&port) };
	rough_aim(r->thief, e->uri);
	begin_between(r, e);
}

void rough_begin_forger(struct rough *r, struct e2e *e, uint8_t forgery, bool to_listener,
			unsigned times)
{
	*r = (struct rough){ .forgery = forgery, .to_listener = to_listener, .forges = times };
	begin_between(r, e);
}

void rough_begin_mute(struct rough *r, struct e2e *e)
{
	*r = (struct rough){ .mute = true };
	begin_between(r, e);
}

void rough_end(struct rough *r)
{
	r->stop = true;
	pthread_join(r->thread, NULL);
	close(r->in);
	close(r->out);
	if (r->thief)
		close(r->thief);
}
