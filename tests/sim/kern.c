/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors and the clock. */
#include "sim/kern_in.h"
#include <errno.h>
#include <stdio.h>

#define SEC 1000000000ull

struct kern kern;

static struct kern_file file[KERN_FDS];
static uint64_t *wakes; /* a heap */
static size_t nwakes, wakes_size;
static uint16_t next_port;

/* ---- the clock, and what happens by itself ---- */

void kern_wake(uint64_t at)
{
	size_t i;

	if (at == KERN_NONE)
		return;
	if (nwakes == wakes_size) {
		wakes_size = 2 * wakes_size + 64;
		wakes = kern_realloc(wakes, wakes_size * sizeof *wakes);
	}
	for (i = nwakes++; i && at < wakes[(i - 1) / 2]; i = (i - 1) / 2)
		wakes[i] = wakes[(i - 1) / 2];
	wakes[i] = at;
}

static void drop_wake(void)
{
	uint64_t last = wakes[--nwakes];
	size_t i = 0, c;

	while ((c = 2 * i + 1) < nwakes) {
		if (c + 1 < nwakes && wakes[c + 1] < wakes[c])
			c++;
		if (last <= wakes[c])
			break;
		wakes[i] = wakes[c];
		i = c;
	}
	wakes[i] = last;
}

uint64_t kern_next(void)
{
	while (nwakes && wakes[0] <= kern.now)
		drop_wake();
	return nwakes ? wakes[0] : KERN_NONE;
}

void kern_go(uint64_t at)
{
	if (at > kern.now)
		kern.now = at;
}

/* Time passes until there is something, and no longer than that. */
static bool pass_time(bool (*ready)(void *arg), void *arg, uint64_t until)
{
	for (;;) {
		uint64_t at = kern_next();

		if (ready(arg))
			return true;
		if (at >= until) {
			if (until == KERN_NONE)
				abort(); /* it would wait for ever */
			kern_go(until);
			return false;
		}
		kern_go(at);
	}
}

bool (*kern_block)(bool (*ready)(void *arg), void *arg, uint64_t until) = pass_time;

uint64_t kern_arrival(void)
{
	return kern.now + kern.delay + kern_draw() % (kern.jitter + 1);
}

/* ---- descriptors ---- */

struct kern_file *kern_file(int fd)
{
	if (fd < KERN_FD || fd >= KERN_FD + KERN_FDS || !file[fd - KERN_FD].kind) {
		fprintf(stderr, "descriptor %d is not open\n", fd);
		abort();
	}
	kern_whose = file[fd - KERN_FD].who;
	kern.now += kern.tick;
	return &file[fd - KERN_FD];
}

int kern_new(enum kern_kind kind)
{
	kern_whose = kind == KERN_TCP || kind == KERN_UNIX ? kern.who : kern.host;
	if (kern_fails("open", EMFILE, ENFILE, ENOMEM))
		return -1;
	if (kern_chance(kern.f.descriptors, &kern.n.descriptors))
		return kern_err(EMFILE);
	for (int i = 0; i < KERN_FDS; i++) {
		if (file[i].kind)
			continue;
		file[i] = (struct kern_file){ .kind = kind,
					      .host = kern.host,
					      .who = kern_whose,
					      .program = kern.program,
					      .life = file[i].life };
		return KERN_FD + i;
	}
	abort();
}

unsigned kern_open(void)
{
	unsigned n = 0;

	for (int i = 0; i < KERN_FDS; i++)
		n += file[i].kind != KERN_FREE;
	return n;
}

struct kern_file *kern_bound(enum kern_kind kind, unsigned host, uint16_t port)
{
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind == kind && file[i].host == host &&
		    kern_seen_port(&file[i]) == port && !file[i].group &&
		    (kind == KERN_UDP || file[i].listening))
			return &file[i];
	return NULL;
}

#define NAT_PORTS 50000u /* from here on, which nobody has himself */
static unsigned nat_ports;

void kern_rebind(unsigned host, uint16_t but)
{
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind == KERN_UDP && file[i].host == host && file[i].port &&
		    file[i].port != but)
			file[i].outer = (uint16_t)(NAT_PORTS + nat_ports++ % 15000);
}

bool kern_forgotten(unsigned host, uint16_t port)
{
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind == KERN_UDP && file[i].host == host && file[i].port == port &&
		    file[i].outer)
			return true;
	return port >= NAT_PORTS;
}

struct kern_file *kern_unix_bound(const char *name)
{
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind == KERN_UNIX && kern_unix_is(&file[i], name))
			return &file[i];
	return NULL;
}

uint16_t kern_free_port(void)
{
	next_port = (uint16_t)(20000 + (next_port + 1) % 30000);
	return next_port;
}

struct sockaddr_in kern_addr(unsigned host, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x0a000001u + host) };
}

bool kern_parse(const struct sockaddr *sa, unsigned *host, uint16_t *port)
{
	struct sockaddr_in a;

	memcpy(&a, sa, sizeof a);
	*host = ntohl(a.sin_addr.s_addr) - 0x0a000001u;
	*port = ntohs(a.sin_port);
	if (a.sin_family == AF_INET && (*host < KERN_HOSTS || !a.sin_addr.s_addr))
		return true;
	errno = ENETUNREACH;
	return false;
}

uint32_t kern_group(const struct sockaddr *sa, uint16_t *port)
{
	struct sockaddr_in a;

	memcpy(&a, sa, sizeof a);
	*port = ntohs(a.sin_port);
	return a.sin_family == AF_INET && IN_MULTICAST(ntohl(a.sin_addr.s_addr))
		       ? ntohl(a.sin_addr.s_addr)
		       : 0;
}

struct kern_file *kern_member(const struct kern_file *after, uint32_t group, uint16_t port)
{
	for (struct kern_file *f = after ? file + (after - file) + 1 : file; f < file + KERN_FDS;
	     f++)
		if (f->kind == KERN_UDP && f->group == group && f->joined == group &&
		    f->port == port)
			return f;
	return NULL;
}

void kern_unwatch(struct kern_file *f)
{
	if (!f->epoll)
		return;
	if (f->prev)
		f->prev->next = f->next;
	else
		f->epoll->watched = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->epoll = f->prev = f->next = NULL;
}

void kern_close(struct kern_file *f)
{
	kern_unwatch(f);
	while (f->watched)
		kern_unwatch(f->watched);
	if (f->kind == KERN_TCP)
		kern_tcp_close(f);
	if (f->kind == KERN_UDP)
		kern_udp_close(f);
	if (f->kind == KERN_SCTP)
		kern_sctp_close(f);
	if (f->kind == KERN_UNIX)
		kern_unix_close(f);
	kern_memory_release(f->memory);
	f->memory = NULL;
	f->kind = KERN_FREE;
	f->life++;
}

void kern_start(uint64_t seed)
{
	kern = (struct kern){ .seed = seed, .gso = true, .mtu = 1500, .live = kern.live };
	kern.now = SEC + sim_below(&kern.seed, 1000 * SEC);
	kern.delay = 100000;
	kern.window = 65536;
	kern.datagrams = 1024;
	kern_nobody();
	kern_unix_nobody();
	nwakes = 0;
	next_port = 0;
	nat_ports = 0;
}

unsigned kern_stop(void)
{
	unsigned n = kern_open();

	kern.f = (struct kern_faults){ 0 };
	for (int i = 0; i < KERN_FDS; i++)
		if (file[i].kind)
			kern_close(&file[i]);
	kern_udp_nobody();
	free(wakes);
	wakes = NULL;
	nwakes = wakes_size = 0;
	return n;
}

void kern_kill(unsigned program)
{
	for (int i = 0; i < KERN_FDS; i++) {
		if (file[i].kind != KERN_UDP || file[i].program != program)
			continue;
		kern_udp_close(&file[i]);
		file[i].dead = true;
		file[i].port = 0;
	}
}

void kern_cut(unsigned host)
{
	unsigned skip = (unsigned)sim_like(8);

	for (int i = 0; i < KERN_FDS; i++) {
		if (file[i].host != host || !(file[i].tcp || file[i].sctp) || file[i].listening ||
		    skip--)
			continue;
		kern.n.reset++;
		if (file[i].sctp)
			kern_sctp_lost(&file[i], ECONNRESET);
		else
			kern_tcp_disconnect(&file[i]);
		return;
	}
}
