/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path between two network namespaces: packets of a TUN device here come out of one there, later,
 * at a rate, some of them never.  The same both ways; loss and jitter only from here to there and
 * back as given.  It is for hosts whose kernel has no netem.
 *
 * usage: relay NAMESPACE DELAY_MS JITTER_MS LOSS_PERCENT MBIT QUEUE [MTU AFTER_S [LATE_PERCENT LATE_MS]]
 *	NAMESPACE: a file of /proc; DELAY_MS: one way; QUEUE: octets that wait at most
 *	MTU AFTER_S: from AFTER_S on larger packets vanish, without a word; those of IPv4 that
 *	may be fragmented are, as a router does that sends no ICMP; MTU 0: all pass
 *	LATE_PERCENT LATE_MS: so many packets are overtaken, since they come so much later
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
	double delay, jitter, loss, rate, mtu_at, late, late_by;
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

static int is_before(const struct packet *a, const struct packet *b)
{
	return a->at < b->at || (a->at == b->at && (int32_t)(a->order - b->order) < 0);
}

static void push_path_packet(struct packet *p)
{
	size_t i = path.n++;

	for (; i && is_before(p, path.heap[(i - 1) / 2]); i = (i - 1) / 2)
		path.heap[i] = path.heap[(i - 1) / 2];
	path.heap[i] = p;
}

static struct packet *pop_path_packet(void)
{
	struct packet *first = path.heap[0], *last = path.heap[--path.n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < path.n) {
		if (k + 1 < path.n && is_before(path.heap[k + 1], path.heap[k]))
			k++;
		if (!is_before(path.heap[k], last))
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

	if ((begin - now) * path.rate > (double)path.queue || chance() < path.loss)
		return 0;
	path.free_at[from] = begin + (double)len / path.rate;
	return path.free_at[from] + path.delay + path.jitter * chance() +
	       (path.late > 0 && chance() < path.late ? path.late_by : 0);
}

/* One packet sets out. */
static void send_into_path(int from, const uint8_t *octets, size_t len, double now)
{
	struct packet *p = path.nspare ? path.spare[path.nspare - 1] : NULL;
	double at = p ? arrival(from, len, now) : 0;

	if (at <= 0)
		return;
	path.nspare--;
	p->at = at;
	p->len = (uint16_t)len;
	p->to = (uint8_t)!from;
	p->order = path.order++;
	memcpy(p->octets, octets, len);
	push_path_packet(p);
}

static void put_tun_u16(uint8_t *at, size_t x)
{
	at[0] = (uint8_t)(x >> 8);
	at[1] = (uint8_t)x;
}

static void put_checksum(uint8_t *ip, size_t len)
{
	uint32_t sum = 0;

	put_tun_u16(ip + 10, 0);
	for (size_t i = 0; i < len; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put_tun_u16(ip + 10, (uint16_t)~sum);
}

/* RFC 791 2.3; of a packet that is no fragment yet */
static void in_fragments(int from, const uint8_t *ip, size_t len, double now)
{
	size_t head = (ip[0] & 15u) * 4u, most = (path.mtu - head) & ~(size_t)7;
	uint8_t part[LEN_MAX];

	for (size_t at = 0; head + at < len; at += most) {
		size_t n = len - head - at < most ? len - head - at : most;
		int more = head + at + n < len;

		memcpy(part, ip, head);
		memcpy(part + head, ip + head + at, n);
		put_tun_u16(part + 2, head + n);
		put_tun_u16(part + 6, at / 8 | (more ? 0x2000u : 0));
		put_checksum(part, head);
		send_into_path(from, part, head + n, now);
	}
}

static void take_tun_packets(int from, double now)
{
	uint8_t ip[LEN_MAX];

	for (int i = 0; i < BATCH; i++) {
		ssize_t n = read(path.fd[from], ip, sizeof ip);

		if (n < 20)
			return;
		if (!path.mtu || now < path.mtu_at || (size_t)n <= path.mtu)
			send_into_path(from, ip, (size_t)n, now);
		else if (ip[0] >> 4 == 4 && !(ip[6] & 0x40))
			in_fragments(from, ip, (size_t)n, now);
	}
}

static void deliver_due_packets(double now)
{
	while (path.n && path.heap[0]->at <= now) {
		struct packet *p = pop_path_packet();

		(void)!write(path.fd[p->to], p->octets, p->len);
		path.spare[path.nspare++] = p;
	}
}

static int open_relay_tun(void)
{
	struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "path" };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, TUNSETIFF, &r))
		peer_die("/dev/net/tun");
	return fd;
}

static void parse_path_options(char **v, int n)
{
	path.delay = strtod(v[2], NULL) / 1000;
	path.jitter = strtod(v[3], NULL) / 1000;
	path.loss = strtod(v[4], NULL) / 100;
	path.rate = strtod(v[5], NULL) * 125000;
	path.queue = strtoul(v[6], NULL, 10);
	path.mtu = n > 8 ? strtoul(v[7], NULL, 10) : 0;
	path.mtu_at = n > 8 ? peer_now() + strtod(v[8], NULL) : 0;
	path.late = n > 10 ? strtod(v[9], NULL) / 100 : 0;
	path.late_by = n > 10 ? strtod(v[10], NULL) / 1000 : 0;
}

int main(int argc, char **argv)
{
	struct packet *all = calloc(PACKETS, sizeof *all);

	if ((argc != 7 && argc != 9 && argc != 11) || !all) {
		fprintf(stderr, "usage: relay NAMESPACE DELAY_MS JITTER_MS LOSS_PERCENT MBIT QUEUE "
				"[MTU AFTER_S [LATE_PERCENT LATE_MS]]\n");
		return 2;
	}
	parse_path_options(argv, argc);
	path.seed = 1;
	for (; path.nspare < PACKETS; path.nspare++)
		path.spare[path.nspare] = &all[path.nspare];
	prctl(PR_SET_TIMERSLACK, 1);
	path.fd[0] = open_relay_tun();
	peer_enter(argv[1]);
	path.fd[1] = open_relay_tun();
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
		take_tun_packets(0, now);
		take_tun_packets(1, now);
		deliver_due_packets(peer_now());
	}
}
