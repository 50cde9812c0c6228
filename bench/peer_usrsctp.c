/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usrsctp the usual way: its own threads and its own UDP sockets, blocking calls, messages of a
 * size in one direction, large buffers.
 */
#include "peer.h"
#include <arpa/inet.h>
#include <usrsctp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BUFFER (4 << 20)

struct ports {
	uint16_t udp_here, udp_there;
};

static struct sockaddr_in get_loopback_address(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static struct socket *make_usrsctp_socket(const struct ports *p)
{
	struct sctp_udpencaps encaps = { .sue_address.ss_family = AF_INET,
					 .sue_port = htons(p->udp_there) };
	struct socket *s;
	int buffer = BUFFER;

	usrsctp_init(p->udp_here, NULL, NULL);
	usrsctp_sysctl_set_sctp_blackhole(2);
	s = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	if (!s ||
	    usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps,
			       sizeof encaps) ||
	    usrsctp_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) ||
	    usrsctp_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer))
		peer_die("usrsctp socket");
	return s;
}

/* Octets that came, through the pipe: the end of SCTP's own shutdown is not waited for. */
static void serve_usrsctp(const struct peer_args *a, const struct ports *p, int ready, int result)
{
	struct socket *l = make_usrsctp_socket(p), *s;
	struct sockaddr_in sa = get_loopback_address(5001);
	uint8_t *mem = peer_memory(a->size);
	uint64_t total = 0;

	if (usrsctp_bind(l, (struct sockaddr *)&sa, sizeof sa) || usrsctp_listen(l, 1))
		peer_die("usrsctp listen");
	if (write(ready, "r", 1) != 1)
		peer_die("pipe");
	s = usrsctp_accept(l, NULL, NULL);
	if (!s)
		peer_die("usrsctp accept");
	for (;;) {
		struct sctp_rcvinfo info;
		socklen_t len = sizeof info, from = 0;
		unsigned type = 0;
		int flags = 0;
		ssize_t n = usrsctp_recvv(s, mem, a->size, NULL, &from, &info, &len, &type, &flags);

		if (n < 0)
			peer_die("usrsctp receive");
		if (n == 0 || n == 1) /* the end is said by a message of one octet */
			break;
		total += (uint64_t)n;
	}
	if (write(result, &total, sizeof total) != sizeof total)
		peer_die("pipe");
}

static void measure_usrsctp(const struct peer_args *a, const struct ports *p, int result)
{
	struct socket *s = make_usrsctp_socket(p);
	struct sockaddr_in sa = get_loopback_address(5001);
	uint8_t *mem = peer_memory(a->size);
	double begin, cpu;
	uint64_t ops = 0, total;

	if (usrsctp_connect(s, (struct sockaddr *)&sa, sizeof sa))
		peer_die("usrsctp connect");
	begin = peer_now();
	cpu = peer_cpu();
	do {
		if (usrsctp_sendv(s, mem, a->size, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0)
			peer_die("usrsctp send");
		ops++;
	} while (peer_now() - begin < a->seconds);
	if (usrsctp_sendv(s, mem, 1, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0 ||
	    read(result, &total, sizeof total) != sizeof total || total != ops * a->size)
		peer_die("usrsctp: not everything came");
	peer_report(a, ops, peer_now() - begin, peer_cpu() - cpu);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "bw");
	uint16_t base = (uint16_t)(20000 + getpid() % 20000 * 2);
	struct ports server = { base, (uint16_t)(base + 1) };
	struct ports client = { (uint16_t)(base + 1), base };
	int ready[2], result[2];
	pid_t child;
	char r;

	if (a.size < 2 || pipe(ready) || pipe(result))
		peer_die("pipe");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		serve_usrsctp(&a, &server, ready[1], result[1]);
		_exit(0);
	}
	close(ready[1]);
	close(result[1]);
	peer_pin(1);
	alarm((unsigned)a.seconds + 20);
	if (read(ready[0], &r, 1) != 1)
		peer_die("server");
	measure_usrsctp(&a, &client, result[0]);
	fflush(stdout);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(0); /* its threads are not worth waiting for */
}
