/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What UDP can do with packets of a size: runs of packets that the kernel cuts (UDP_SEGMENT) and
 * joins (UDP_GRO), a CRC32c over each, computed, checked, and the payload copied to its place.  No
 * retransmission: what comes is counted by the receiver, who informs the sender how far it is, so
 * that no more than a window is under way.  A packet that is lost ends the measurement.
 *
 * usage: peer_gso bw PACKET SECONDS		PACKET: octets of UDP payload
 */
#include "peer_udp.h"
#include <errno.h>
#include <isa-l.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define HDR	8u /* CRC32c, number */
#define RUN	64u
#define RUN_MAX 65000u
#define BATCH	8u
#define WINDOW	(1u << 20)
#define BUFFER	(8 << 20)

static int make_gso_socket(struct sockaddr_in *sa)
{
	int fd = peer_udp(sa, BUFFER), one = 1;

	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one))
		peer_die("UDP_GRO");
	return fd;
}

/* ---- the side that receives ---- */

struct sink {
	uint8_t *place;
	uint32_t next; /* number of the packet that is due */
};

static void take_gso_packets(struct sink *s, const uint8_t *p, size_t len)
{
	uint32_t crc, number;

	memcpy(&crc, p, sizeof crc);
	memcpy(&number, p + 4, sizeof number);
	if (len < HDR || number != s->next++ ||
	    crc != crc32_iscsi((unsigned char *)(uintptr_t)(p + 4), (int)(len - 4), 0xffffffff)) {
		fprintf(stderr, "peer_gso: packet %u is not what was sent\n", number);
		exit(1);
	}
	memcpy(s->place, p + HDR, len - HDR);
}

static size_t segment_of(struct msghdr *m, size_t len)
{
	int seg = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&seg, CMSG_DATA(c), sizeof seg);
	return seg > 0 ? (size_t)seg : len;
}

__attribute__((noreturn)) static void serve_gso(int fd)
{
	static uint8_t buf[BATCH][65536], ctrl[BATCH][64], place[65536];
	struct sink s = { .place = place };
	struct iovec iov[BATCH];
	struct mmsghdr m[BATCH];

	for (;;) {
		for (unsigned i = 0; i < BATCH; i++) {
			iov[i] = (struct iovec){ buf[i], sizeof buf[i] };
			m[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
							.msg_iovlen = 1,
							.msg_control = ctrl[i],
							.msg_controllen = sizeof ctrl[i] };
		}
		int n = recvmmsg(fd, m, BATCH, MSG_WAITFORONE, NULL);

		if (n < 0)
			peer_die("receive");
		for (int i = 0; i < n; i++) {
			size_t seg = segment_of(&m[i].msg_hdr, m[i].msg_len);

			if (m[i].msg_len < HDR) /* the end */
				exit(0);
			for (size_t at = 0; at < m[i].msg_len; at += seg)
				take_gso_packets(&s, buf[i] + at,
						 m[i].msg_len - at < seg ? m[i].msg_len - at : seg);
		}
		if (send(fd, &s.next, sizeof s.next, 0) < 0)
			peer_die("acknowledgement");
	}
}

/* ---- the side that sends ---- */

struct source {
	int fd;
	size_t packet, run;
	uint8_t *mem;
	uint8_t head[BATCH][RUN][HDR];
	struct iovec iov[BATCH][2 * RUN];
	uint8_t ctrl[BATCH][CMSG_SPACE(sizeof(uint16_t))];
	uint32_t next, acked;
};

static void put_run(struct source *s, unsigned k, struct msghdr *m)
{
	uint16_t size = (uint16_t)s->packet;
	size_t len = s->packet - HDR;
	struct cmsghdr *c;

	for (size_t i = 0; i < s->run; i++) {
		uint8_t *head = s->head[k][i], *body = s->mem + i * len;
		uint32_t crc;

		memcpy(head + 4, &s->next, sizeof s->next);
		s->next++;
		crc = crc32_iscsi(head + 4, 4, 0xffffffff);
		crc = crc32_iscsi(body, (int)len, crc);
		memcpy(head, &crc, sizeof crc);
		s->iov[k][2 * i] = (struct iovec){ head, HDR };
		s->iov[k][2 * i + 1] = (struct iovec){ body, len };
	}
	*m = (struct msghdr){ .msg_iov = s->iov[k],
			      .msg_iovlen = 2 * s->run,
			      .msg_control = s->ctrl[k],
			      .msg_controllen = sizeof s->ctrl[k] };
	c = CMSG_FIRSTHDR(m);
	*c = (struct cmsghdr){ .cmsg_level = IPPROTO_UDP,
			       .cmsg_type = UDP_SEGMENT,
			       .cmsg_len = CMSG_LEN(sizeof size) };
	memcpy(CMSG_DATA(c), &size, sizeof size);
}

/* Wait until @most packets or fewer are under way. */
static void await_gso_acks(struct source *s, uint32_t most)
{
	while (s->next - s->acked > most) {
		uint32_t got;

		if (recv(s->fd, &got, sizeof got, 0) != sizeof got)
			peer_die("no acknowledgement: a packet was lost");
		s->acked = got;
	}
}

static void measure_gso(struct source *s, const struct peer_args *a, pid_t child)
{
	struct mmsghdr m[BATCH];
	uint32_t most = (uint32_t)(WINDOW / s->packet);
	double begin = peer_now(), end;
	unsigned n = WINDOW / 4 / (unsigned)(s->run * s->packet);
	struct peer_args b = *a;

	n = n < 1 ? 1 : n > BATCH ? BATCH : n;
	do {
		for (unsigned k = 0; k < n; k++)
			put_run(s, k, &m[k].msg_hdr);
		if (sendmmsg(s->fd, m, n, 0) != (int)n)
			peer_die("send");
		await_gso_acks(s, most);
	} while (peer_now() - begin < a->seconds);
	await_gso_acks(s, 0);
	end = peer_now();
	(void)!send(s->fd, "", 1, 0);
	b.size = s->packet - HDR;
	peer_report_both(&b, s->next, end - begin, child);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "bw");
	struct timeval second = { .tv_sec = 1 };
	static struct source s;
	struct sockaddr_in here, there;
	int fd = make_gso_socket(&there);
	pid_t child;

	if (a.size <= HDR || a.size > RUN_MAX)
		peer_die("PACKET");
	s.fd = make_gso_socket(&here);
	s.packet = a.size;
	s.run = RUN_MAX / a.size < RUN ? RUN_MAX / a.size : RUN;
	s.mem = peer_memory(RUN_MAX);
	if (connect(fd, (struct sockaddr *)&here, sizeof here) ||
	    connect(s.fd, (struct sockaddr *)&there, sizeof there) ||
	    setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second))
		peer_die("connect");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		serve_gso(fd);
	}
	peer_pin(1);
	measure_gso(&s, &a, child);
	return 0;
}
