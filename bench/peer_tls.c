/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of secured wires: plain programs of GnuTLS and OpenSSL over TCP, TLS 1.3 with AES-128-GCM; and records
 * of ours without the rest of the stack (own: by the fastest library, own-gnutls: by GnuTLS).  Both sides try
 * without a pause.  After WAY: comes bw: writes of a size; ping: round trips; setup-x509, setup-psk: connect, handshake and
 * one round trip, again and again.
 */
#include "peer_tls.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

static const struct peer_tls *const ways[] = { &peer_gnutls, &peer_openssl, &peer_own_gnutls,
					       &peer_own };

static void prepare_socket(int fd)
{
	int one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		peer_die("socket");
}

/* Whether @n octets came before the end. */
static int read_all(const struct peer_tls *w, void *end, uint8_t *p, size_t n)
{
	while (n) {
		size_t k = w->read(end, p, n);

		if (!k)
			return 0;
		p += k;
		n -= k;
	}
	return 1;
}

static int is_setup(const struct peer_args *a)
{
	return !strncmp(a->mode, "setup", 5);
}

static void serve_tls(const struct peer_tls *w, int listener, const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);
	void *end;
	int fd;

	do {
		fd = accept(listener, NULL, NULL);
		prepare_socket(fd);
		end = w->begin(fd, 1, !strcmp(a->mode, "setup-x509"));
		if (!strcmp(a->mode, "bw")) {
			while (w->read(end, mem, a->size))
				;
			w->write(end, mem, 1); /* everything has come */
		} else {
			while (read_all(w, end, mem, a->size))
				w->write(end, mem, a->size);
		}
		w->close(end);
		close(fd);
	} while (is_setup(a));
}

static int connect_to(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to))
		peer_die("connect");
	prepare_socket(fd);
	return fd;
}

static void measure_round_trips(const struct peer_tls *w, const struct sockaddr_in *to,
				const struct peer_args *a)
{
	uint8_t *mem = peer_memory(a->size);
	struct peer_median m = { 0 };
	double begin, cpu;
	void *end = NULL;
	int fd = -1;

	if (!is_setup(a)) {
		fd = connect_to(to);
		end = w->begin(fd, 0, 0);
	}
	begin = peer_now();
	cpu = peer_cpu();
	while (peer_now() - begin < a->seconds) {
		double t = peer_now();

		if (is_setup(a)) {
			fd = connect_to(to);
			end = w->begin(fd, 0, !strcmp(a->mode, "setup-x509"));
		}
		w->write(end, mem, a->size);
		if (!read_all(w, end, mem, a->size))
			peer_die("peer has gone");
		peer_median_add(&m, peer_now() - t);
		if (is_setup(a)) {
			w->close(end);
			close(fd);
		}
	}
	peer_report_median(a, &m, peer_now() - begin, peer_cpu() - cpu);
}

static void measure_writes(const struct peer_tls *w, const struct sockaddr_in *to,
			   const struct peer_args *a, pid_t child)
{
	uint8_t *mem = peer_memory(a->size);
	int fd = connect_to(to);
	void *end = w->begin(fd, 0, 0);
	double begin = peer_now(), taken;
	uint64_t ops = 0;

	do {
		w->write(end, mem, a->size);
		ops++;
	} while (peer_now() - begin < a->seconds);
	/* no half close: the last record is one of one octet, which the other side waits for */
	w->close(end);
	while (recv(fd, mem, 1, MSG_DONTWAIT) != 1)
		;
	taken = peer_now() - begin;
	close(fd);
	peer_report_both(a, ops, taken, child);
}

int main(int argc, char **argv)
{
	const struct peer_tls *w = NULL;
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof sa;
	struct peer_args a;
	pid_t child;
	int listener;
	char *mode = argc > 1 ? strchr(argv[1], ':') : NULL;

	for (size_t i = 0; mode && i < sizeof ways / sizeof *ways; i++)
		if (strlen(ways[i]->name) == (size_t)(mode - argv[1]) &&
		    !strncmp(argv[1], ways[i]->name, (size_t)(mode - argv[1])))
			w = ways[i];
	if (!w) {
		fprintf(stderr, "usage: %s gnutls|openssl|own-gnutls|own:MODE SIZE SECONDS\n",
			argv[0]);
		return 2;
	}
	argv[1] = mode + 1;
	a = peer_parse(argc, argv, "bw|ping|setup-x509|setup-psk");
	signal(SIGPIPE, SIG_IGN);
	w->prepare();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (inet_pton(AF_INET, peer_host(), &sa.sin_addr) != 1 || listener < 0 ||
	    bind(listener, (struct sockaddr *)&sa, len) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&sa, &len))
		peer_die("listen");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		serve_tls(w, listener, &a);
		return 0;
	}
	peer_pin(1);
	if (!strcmp(a.mode, "bw")) {
		measure_writes(w, &sa, &a, child);
		return 0;
	}
	measure_round_trips(w, &sa, &a);
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) != child;
}
