/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path between two network namespaces: packets of a TUN device here come out of one there, later,
 * at a rate, some of them never.  The same both ways; loss and jitter only from here to there and
 * back as given.  It is for hosts whose kernel has no netem.
 *
 * usage: relay NAMESPACE DELAY_MS JITTER_MS LOSS_PERCENT MBIT QUEUE [MTU AFTER_S]
 *	NAMESPACE: a file of /proc; DELAY_MS: one way; QUEUE: octets that wait at most
 *	MTU AFTER_S: larger packets vanish, without a word, from AFTER_S on
 *
 * The devices are called "path".  "ready" when they are there; until it is killed.
 */
#include "peer.h"
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#define PACKETS 32768u
#define LEN_MAX 2048u
#define BATCH	64

struct packet {
	double at;
	uint32_t order; /* of two at the same time the first comes first */
	uint16_t len;
	uint8_t to;
	uint8_t octets[LEN_MAX];
};

static struct {
	double delay, jitter, loss, rate, mtu_at;
	size_t queue, mtu;
	double free_at[2];
	int fd[2];
	struct packet *heap[PACKETS];
	struct packet *spare[PACKETS];
	size_t n, nspare;
	uint32_t order;
	uint64_t seed;
} path;

static double chance(void)
{
	path.seed = path.seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(path.seed >> 11) / 9007199254740992.0;
}

static int before(const struct packet *a, const struct packet *b)
{
	return a->at < b->at || (a->at == b->at && (int32_t)(a->order - b->order) < 0);
}

static void push(struct packet *p)
{
	size_t i = path.n++;

	for (; i && before(p, path.heap[(i - 1) / 2]); i = (i - 1) / 2)
		path.heap[i] = path.heap[(i - 1) / 2];
	path.heap[i] = p;
}

static struct packet *pop(void)
{
	struct packet *first = path.heap[0], *last = path.heap[--path.n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < path.n) {
		if (k + 1 < path.n && before(path.heap[k + 1], path.heap[k]))
			k++;
		if (!before(path.heap[k], last))
			break;
		path.heap[i] = path.heap[k];
		i = k;
	}
	path.heap[i] = last;
	return first;
}

/* When it arrives; 0: never. */
static double arrival(int from, size_t len, double now)
{
	double begin = path.free_at[from] > now ? path.free_at[from] : now;

	if ((begin - now) * path.rate > (double)path.queue || chance() < path.loss ||
	    (path.mtu && now >= path.mtu_at && len > path.mtu))
		return 0;
	path.free_at[from] = begin + (double)len / path.rate;
	return path.free_at[from] + path.delay + path.jitter * chance();
}

static void take(int from, double now)
{
	for (int i = 0; i < BATCH && path.nspare; i++) {
		struct packet *p = path.spare[path.nspare - 1];
		ssize_t n = read(path.fd[from], p->octets, sizeof p->octets);

		if (n <= 0)
			return;
		p->at = arrival(from, (size_t)n, now);
		if (p->at <= 0)
			continue;
		path.nspare--;
		p->len = (uint16_t)n;
		p->to = (uint8_t)!from;
		p->order = path.order++;
		push(p);
	}
}

static void deliver(double now)
{
	while (path.n && path.heap[0]->at <= now) {
		struct packet *p = pop();

		(void)!write(path.fd[p->to], p->octets, p->len);
		path.spare[path.nspare++] = p;
	}
}

static int open_tun(void)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "path" };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &r))
		peer_die("/dev/net/tun");
	return fd;
}

static void parse(char **v, int n)
{
	path.delay = strtod(v[2], NULL) / 1000;
	path.jitter = strtod(v[3], NULL) / 1000;
	path.loss = strtod(v[4], NULL) / 100;
	path.rate = strtod(v[5], NULL) * 125000;
	path.queue = strtoul(v[6], NULL, 10);
	path.mtu = n > 8 ? strtoul(v[7], NULL, 10) : 0;
	path.mtu_at = n > 8 ? peer_now() + strtod(v[8], NULL) : 0;
}

int main(int argc, char **argv)
{
	struct packet *all = calloc(PACKETS, sizeof *all);

	if ((argc != 7 && argc != 9) || !all) {
		fprintf(stderr, "usage: relay NAMESPACE DELAY_MS JITTER_MS LOSS_PERCENT MBIT QUEUE "
				"[MTU AFTER_S]\n");
		return 2;
	}
	parse(argv, argc);
	path.seed = 1;
	for (; path.nspare < PACKETS; path.nspare++)
		path.spare[path.nspare] = &all[path.nspare];
	prctl(PR_SET_TIMERSLACK, 1);
	path.fd[0] = open_tun();
	peer_enter(argv[1]);
	path.fd[1] = open_tun();
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd fds[2] = { { .fd = path.fd[0], .events = POLLIN },
					 { .fd = path.fd[1], .events = POLLIN } };
		double now = peer_now(), left = path.n ? path.heap[0]->at - now : 1;
		struct timespec wait = { 0 };

		if (left > 0)
			wait.tv_nsec = left < 1 ? (long)(left * 1e9) : 999999999;
		ppoll(fds, 2, &wait, NULL);
		now = peer_now();
		take(0, now);
		take(1, now);
		deliver(peer_now());
	}
}
