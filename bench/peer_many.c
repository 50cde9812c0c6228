/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit with many sessions: plain TCP and epoll, SIZE connections, four messages of 4 KiB with
 * each call, counted where they arrive.  What the kernel loses with the number of sockets shows here.
 * active: up to 64 connections in turn, until their sockets are full, then those that epoll names
 * next; turns: all of them in turn, as sessions.c serves its own; placed: the same, with what must be
 * done with the octets besides: each message is copied and summed (CRC32c) before it is sent, summed
 * where it arrives, and copied to a place of its own, of as many as sessions.c has.
 * usage: peer_many active|turns|placed SIZE SECONDS
 */
#include "peer.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MESSAGE 4096u
#define BURST	(4 * MESSAGE)	  /* as sessions.c has under way */
#define SCRATCH (512u * 1024)	  /* read at a time, as the stack does */
#define PLACES	(8192u * MESSAGE) /* sessions.c: SHARED */
#define READY	64
#define WARM	0.5 /* seconds; until all buffers are full */

struct board {
	volatile uint64_t up, octets;
	volatile uint32_t sum;
	int placed;
};

static uint32_t compute_burst_crc(const uint8_t *p, size_t len)
{
	return crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, 0xffffffff);
}

static void watch_flow(int epfd, int fd, uint32_t events, uint32_t tag)
{
	struct epoll_event ev = { .events = events, .data.u32 = tag };
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		peer_die("socket");
}

/* ---- the side that accepts; polls, until it is killed ---- */

/* What has come goes to the places in turn, whatever connection it is of. */
static void place_octets(struct board *b, uint8_t *places, const uint8_t *mem, size_t len)
{
	static size_t at;

	for (size_t n; len; mem += n, len -= n) {
		n = MESSAGE - at % MESSAGE;
		n = len < n ? len : n;
		b->sum = compute_burst_crc(mem, n);
		memcpy(places + at, mem, n);
		at = (at + n) % PLACES;
	}
}

__attribute__((noreturn)) static void serve_many(int listener, struct board *b, size_t n)
{
	uint8_t *mem = peer_memory(SCRATCH), *places = b->placed ? peer_memory(PLACES) : NULL;
	struct epoll_event ev[READY];
	int epfd = epoll_create1(0);

	if (epfd < 0)
		peer_die("epoll");
	for (size_t i = 0; i < n; i++) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			peer_die("accept");
		watch_flow(epfd, fd, EPOLLIN, (uint32_t)fd);
		b->up++;
	}
	for (;;) {
		int k = epoll_wait(epfd, ev, READY, 0);

		for (int i = 0; i < k; i++) {
			ssize_t got = recv((int)ev[i].data.u32, mem, SCRATCH, 0);

			if (got <= 0)
				peer_die("recv");
			if (places)
				place_octets(b, places, mem, (size_t)got);
			b->octets += (uint64_t)got;
		}
	}
}

/* ---- the side that connects ---- */

struct flow {
	int fd;
	size_t left; /* of the burst begun */
};

/* Those that take more, in turn.  Others join it while there are fewer than @enough. */
struct line {
	uint32_t *who;
	size_t size, head, count, enough;
};

static void line_push(struct line *l, uint32_t who)
{
	l->who[(l->head + l->count++) % l->size] = who;
}

static uint32_t line_pop(struct line *l)
{
	uint32_t who = l->who[l->head];

	l->head = (l->head + 1) % l->size;
	l->count--;
	return who;
}

/* A burst is made of its messages once, also if the socket takes it in pieces. */
static void make_burst(uint8_t *burst, const uint8_t *mem)
{
	uint32_t crc;

	for (size_t i = 0; i < BURST; i += MESSAGE) {
		memcpy(burst + i, mem + i, MESSAGE);
		crc = compute_burst_crc(burst + i, MESSAGE - sizeof crc);
		memcpy(burst + i + MESSAGE - sizeof crc, &crc, sizeof crc);
	}
}

/* Return: whether the socket has taken the whole burst.  @burst: NULL, or where it is made. */
static int send_flow_burst(struct flow *f, const uint8_t *mem, uint8_t *burst)
{
	ssize_t k;

	if (burst && f->left == BURST)
		make_burst(burst, mem);
	k = send(f->fd, burst ? burst : mem, f->left, MSG_NOSIGNAL);
	if (k < 0 && errno != EAGAIN)
		peer_die("send");
	if (k < 0 || (size_t)k < f->left) {
		f->left -= k < 0 ? 0 : (size_t)k;
		return 0;
	}
	f->left = BURST;
	return 1;
}

static void turn_flows(struct flow *f, struct line *l, int epfd, const uint8_t *mem, uint8_t *burst)
{
	struct epoll_event ev[READY];
	int k = l->count < l->enough ? epoll_wait(epfd, ev, READY, 0) : 0;

	for (int i = 0; i < k; i++)
		line_push(l, ev[i].data.u32);
	for (size_t i = l->count < READY ? l->count : READY; i; i--) {
		uint32_t who = line_pop(l);

		if (send_flow_burst(&f[who], mem, burst))
			line_push(l, who);
	}
}

static void measure_flows(struct flow *f, int epfd, struct board *b, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(BURST), *burst = b->placed ? peer_memory(BURST) : NULL;
	struct line l = { .who = peer_memory(a->size * sizeof(*l.who)),
			  .size = a->size,
			  .enough = strcmp(a->mode, "active") ? a->size : 1 };
	double warm = peer_now(), begin = 0, end, cpu = 0;
	uint64_t first = 0;

	do {
		turn_flows(f, &l, epfd, mem, burst);
		end = peer_now();
		if (begin == 0 && end - warm > WARM) {
			begin = end;
			cpu = peer_cpu();
			first = b->octets;
		}
	} while (begin == 0 || end - begin < a->seconds);
	peer_report(a, (b->octets - first) / MESSAGE, end - begin, peer_cpu() - cpu);
}

static void connect_flows(struct flow *f, size_t n, const struct sockaddr_in *to, int epfd)
{
	for (size_t i = 0; i < n; i++) {
		f[i] = (struct flow){ socket(AF_INET, SOCK_STREAM, 0), BURST };
		if (f[i].fd < 0 || connect(f[i].fd, (const struct sockaddr *)to, sizeof *to))
			peer_die("connect");
		watch_flow(epfd, f[i].fd, EPOLLOUT | EPOLLET, (uint32_t)i);
	}
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "active|turns|placed");
	struct sockaddr_in sa = { .sin_family = AF_INET };
	struct board *b =
		mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	socklen_t len = sizeof sa;
	int epfd = epoll_create1(0), home = open("/proc/self/ns/net", O_RDONLY), listener;
	struct flow *f = peer_memory(a.size * sizeof(*f));
	pid_t child;

	peer_descriptors();
	if (getenv("BENCH_SERVE_NS")) /* the socket stays where it was made */
		peer_enter(getenv("BENCH_SERVE_NS"));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (getenv("BENCH_SERVE_NS") && setns(home, CLONE_NEWNET))
		peer_die("back");
	if (b == MAP_FAILED || listener < 0 || epfd < 0 ||
	    inet_pton(AF_INET, peer_host(), &sa.sin_addr) != 1 ||
	    bind(listener, (struct sockaddr *)&sa, len) || listen(listener, 4096) ||
	    getsockname(listener, (struct sockaddr *)&sa, &len))
		peer_die("socket");
	b->placed = !strcmp(a.mode, "placed");
	child = fork();
	if (child < 0)
		peer_die("fork");
	alarm((unsigned)a.seconds + 50);
	if (!child) {
		peer_pin(0);
		serve_many(listener, b, a.size);
	}
	peer_pin(1);
	connect_flows(f, a.size, &sa, epfd);
	while (b->up < a.size)
		usleep(100);
	measure_flows(f, epfd, b, &a);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0);
}
