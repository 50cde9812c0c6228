/* SPDX-License-Identifier: BSD-2-Clause */
/* The network: the suite's sockets, the clock, and packets on their way. */
#include "lies/ipoib/world.h"
#include "conform/peer/inside.h"
#include "support/icrc.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NET	 0x0a4d0000u /* 10.77.0.0/24 */
#define UDP_PORT 4791u
#define FD	 1000 /* the first of ours */
#define FDS	 64u
#define STEP	 1000ull /* ns that a packet or a look at the clock takes */
#define MS	 1000000ull

/* The linker gives calls of f to __wrap_f, and f itself is __real_f. */
#define WRAPPED(f)                                                                                 \
	__typeof__(f) __real_##f;                                                                  \
	__typeof__(f) __wrap_##f

WRAPPED(cf_now);
WRAPPED(ci_forget);
WRAPPED(socket);
WRAPPED(setsockopt);
WRAPPED(bind);
WRAPPED(close);
WRAPPED(poll);
WRAPPED(sendto);
WRAPPED(recvfrom);
WRAPPED(malloc);
WRAPPED(calloc);

struct flying {
	struct flying *next;
	uint16_t from, lid;
	size_t len;
	uint8_t b[];
};

struct list {
	struct flying *first, **end;
};

struct world world;
static struct list unicast, multicast, nodes; /* for the suite; for the others */
static struct {
	bool open;
	uint32_t ip;
	uint16_t port;
} fds[FDS];
static void (*hears)(struct said *s);
static bool inside; /* what is called now is not the suite's */

/* ---- lists ---- */

static void put_world_liar(struct list *l, uint16_t from, uint16_t lid, const uint8_t *b,
			   size_t len)
{
	struct flying *f = __real_malloc(sizeof *f + len);

	*f = (struct flying){ .from = from, .lid = lid, .len = len };
	if (len)
		memcpy(f->b, b, len);
	*l->end = f;
	l->end = &f->next;
}

static struct flying *take_lying_frame(struct list *l)
{
	struct flying *f = l->first;

	if (f)
		l->first = f->next;
	if (!l->first)
		l->end = &l->first;
	return f;
}

static void drop_all_world_liar(struct list *l)
{
	while (l->first)
		free(take_lying_frame(l));
	l->end = &l->first;
}

void world_begin(unsigned mode, void (*told)(struct said *s))
{
	world = (struct world){ .now = 1ull << 40, .target_qpn = TARGET_QPN, .target_mtu = 5 };
	hears = told;
	memset(fds, 0, sizeof fds);
	drop_all_world_liar(&unicast);
	drop_all_world_liar(&multicast);
	drop_all_world_liar(&nodes);
	ddps_conform_ipoib_options_init(&world.o);
	memcpy(world.o.ip4, (uint8_t[4]){ 10, 77, 0, SUITE }, 4);
	memcpy(world.o.gid, (uint8_t[16]){ 0xfe, 0x80, [8] = 2, [15] = SUITE }, 16);
	memcpy(world.o.target, (uint8_t[4]){ 10, 88, 0, 2 }, 4);
	memcpy(world.o.target6, (uint8_t[16]){ 0xfe, 0x80, [15] = TARGET }, 16);
	memcpy(world.o.link_ip4, (uint8_t[4]){ 10, 88, 0, 100 }, 4);
	world.o.life = 12;
	world.o.seed = 77;
	world.o.thorough = !(mode & QUICKLY);
	world.o.wait_ms = mode & FOR_LONG ? 15000 : 2000;
	if (mode & BY_PORT)
		world.o.fabric = &world_fabric;
	else if (mode & AS_CLIENT)
		world.o.sa_lid = SA;
}

void world_end(void)
{
	inside = true;
	nodes_end();
	drop_all_world_liar(&unicast);
	drop_all_world_liar(&multicast);
	drop_all_world_liar(&nodes);
	inside = false;
}

/* ---- on their way ---- */

struct ddps_ib_udp_hdr world_header(uint16_t from, uint16_t lid)
{
	bool group = lid >= CI_MLID;

	return (struct ddps_ib_udp_hdr){ .src = NET | from,
					 .dst = NET | (group ? 0xff : lid),
					 .sport = group ? lid : UDP_PORT,
					 .dport = UDP_PORT };
}

void world_send(uint16_t from, uint16_t lid, const uint8_t *b, size_t len)
{
	bool suite = !nodes_suite();

	if (lid >= CI_MLID) {
		put_world_liar(&nodes, from, lid, b, len);
		if (suite)
			put_world_liar(&multicast, from, lid, b, len);
	} else if (lid == SUITE && suite) {
		put_world_liar(&unicast, from, lid, b, len);
	} else {
		put_world_liar(&nodes, from, lid, b, len);
	}
}

/* The liar's version of @s, sealed. */
static void say_world_liar(const struct said *s)
{
	struct ddps_ib_udp_hdr h = world_header(s->from, s->lid);
	struct ci_addr a = { .src = h.src, .dst = h.dst, .sport = h.sport, .dport = h.dport };
	uint8_t b[DATA_MAX + 64];
	size_t len;

	len = ci_pkt_build(b, &s->p, &a);
	if (s->flips) {
		b[s->at < 0 ? (int)len + s->at : s->at] ^= (uint8_t)s->flips;
		icrc_put(&h, b, len - CI_ICRC);
	}
	world_send(s->from, s->lid, b, len - s->cut);
}

void ahead(struct said *s)
{
	say_world_liar(s);
}

/* Then it goes on as it was, with all that was wrong about it. */
static bool is_same_world_liar(const struct said *a, const struct said *b)
{
	return !memcmp(&a->p, &b->p, sizeof a->p) && a->from == b->from && a->lid == b->lid &&
	       a->cut == b->cut && a->flips == b->flips && !memcmp(a->m, b->m, sizeof a->m);
}

/* A packet of the suite's or the target's is subject to lies. */
void world_says(uint16_t from, uint16_t lid, const uint8_t *b, size_t len)
{
	struct said s = { .from = from, .lid = lid }, was;

	if ((from != SUITE && from != TARGET) || len > DATA_MAX || ci_pkt_parse(&s.p, b, len)) {
		world_send(from, lid, b, len);
		return;
	}
	if (s.p.len)
		memcpy(s.m, s.p.data, s.p.len);
	s.p.data = s.m;
	s.p.flags &= 0xcf; /* the pad is counted anew */
	memcpy(&was, &s, sizeof s);
	hears(&s);
	if (s.drop)
		return;
	if (is_same_world_liar(&was, &s))
		world_send(from, lid, b, len);
	else
		say_world_liar(&s);
}

/* Away from the nodes.  Return: whether there was one. */
static bool deliver_to_world_liar(void)
{
	struct flying *f = take_lying_frame(&nodes);
	bool group;

	if (!f)
		return false;
	world.now += STEP;
	group = f->lid >= CI_MLID;
	for (uint16_t lid = SUITE; lid <= STRANGER; lid++)
		if (lid != f->from && (group || lid == f->lid))
			nodes_take(lid, f->from, group ? f->lid : 0, f->b, f->len);
	free(f);
	return true;
}

static bool go_on_until(uint64_t until, bool stopped)
{
	bool was = inside, came;

	inside = true;
	for (;;) {
		uint64_t due;

		while (deliver_to_world_liar())
			;
		nodes_tick();
		if (nodes.first)
			continue;
		came = unicast.first || multicast.first || world.came;
		due = nodes_due();
		if ((came && !stopped) || world.now >= until)
			break;
		world.now = due < until ? (due > world.now ? due : world.now + STEP) : until;
	}
	inside = was;
	return came;
}

bool world_turn(uint64_t until)
{
	return go_on_until(until, false);
}

void world_stop(uint64_t until)
{
	(void)go_on_until(until, true);
}

/* ---- the suite's calls ---- */

static bool does_world_liar_fail(void)
{
	if (inside || !world.calls || --world.calls)
		return false;
	world.calls = world.calls_for_good;
	errno = world.call_error;
	return true;
}

uint64_t __wrap_cf_now(void)
{
	return world.now += STEP;
}

/* Called at the beginning of each case. */
void __wrap_ci_forget(struct ci *ci)
{
	world.ci = ci;
	__real_ci_forget(ci);
}

int __wrap_socket(int domain, int type, int protocol)
{
	(void)domain, (void)type, (void)protocol;
	for (unsigned i = 0, bad = does_world_liar_fail(); !bad && i < FDS; i++)
		if (!fds[i].open) {
			fds[i].open = true;
			world.sockets++;
			return FD + (int)i;
		}
	return -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *v, socklen_t len)
{
	(void)fd, (void)level, (void)name, (void)v, (void)len;
	return does_world_liar_fail() ? -1 : 0;
}

int __wrap_bind(int fd, __CONST_SOCKADDR_ARG a, socklen_t len)
{
	const struct sockaddr_in *in = a.__sockaddr_in__;

	(void)len;
	if (does_world_liar_fail())
		return -1;
	fds[fd - FD].ip = ntohl(in->sin_addr.s_addr);
	fds[fd - FD].port = ntohs(in->sin_port);
	return 0;
}

int __wrap_close(int fd)
{
	if (fd < FD || fd >= FD + (int)FDS || !fds[fd - FD].open)
		return __real_close(fd);
	fds[fd - FD].open = false;
	world.sockets--;
	return 0;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	uint64_t until = world.now + (ms > 0 ? (unsigned)ms * MS : 0);

	for (nfds_t i = 0; i < n; i++)
		p[i].revents = 0;
	if (does_world_liar_fail())
		return -1;
	if (world.stop_each && ++world.waits % world.stop_each == 0)
		world_stop(world.now + world.stop_ms * MS);
	if (!world_turn(until) || n < 2)
		return 0;
	p[0].revents = unicast.first ? POLLIN : 0;
	p[1].revents = multicast.first ? POLLIN : 0;
	return !!unicast.first + !!multicast.first;
}

ssize_t __wrap_sendto(int fd, const void *b, size_t len, int flags, __CONST_SOCKADDR_ARG to,
		      socklen_t to_len)
{
	const struct sockaddr_in *in = to.__sockaddr_in__;
	uint16_t lid = (uint16_t)(ntohl(in->sin_addr.s_addr) & 0xff);

	(void)flags, (void)to_len;
	if (does_world_liar_fail())
		return -1;
	world.now += STEP;
	world_says(SUITE, lid == 0xff ? fds[fd - FD].port : lid, b, len);
	return (ssize_t)len;
}

ssize_t __wrap_recvfrom(int fd, void *b, size_t room, int flags, __SOCKADDR_ARG from, socklen_t *n)
{
	bool group = fds[fd - FD].ip == (NET | 0xff);
	struct flying *f = NULL;
	size_t len;

	(void)flags;
	if (does_world_liar_fail())
		return -1;
	f = take_lying_frame(group ? &multicast : &unicast);
	if (!f) {
		errno = EAGAIN;
		return -1;
	}
	*from.__sockaddr_in__ = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr =
			htonl(f->from > 0xff ? 0x0a4e0000u | (f->from & 0xff) : NET | f->from),
		.sin_port = htons(group ? f->lid : UDP_PORT)
	};
	*n = sizeof(struct sockaddr_in);
	len = f->len < room ? f->len : room;
	memcpy(b, f->b, len);
	free(f);
	return (ssize_t)len;
}

static bool refuse_world_liar_memory(void)
{
	return !inside && world.memory && !--world.memory;
}

void *__wrap_malloc(size_t len)
{
	return refuse_world_liar_memory() ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
	return refuse_world_liar_memory() ? NULL : __real_calloc(n, len);
}
