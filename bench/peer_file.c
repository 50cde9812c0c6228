/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The least work of a file's way from one process to another, as a limit for put and get: read,
 * written to plain TCP, received, written to a new file; and on either side a digest, in
 * another thread.  Both files are in /dev/shm.  usage: peer_file sha256|none SIZE SECONDS
 */
#include "peer.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <sys/socket.h>

#define BLOCK (1u << 20)
#define SLOTS 8u

/* Blocks that the digest is behind with: who moves octets waits if it is all of them. */
struct digest {
	uint8_t *mem;
	size_t len[SLOTS];
	unsigned put, got;
	int on;
	pthread_mutex_t lock;
	pthread_cond_t moved;
	pthread_t thread;
	struct sha256_ctx sha;
};

static void *digest_thread(void *arg)
{
	struct digest *d = arg;

	pthread_mutex_lock(&d->lock);
	for (;;) {
		unsigned i = d->got % SLOTS;

		if (d->got == d->put) {
			pthread_cond_wait(&d->moved, &d->lock);
			continue;
		}
		if (!d->len[i])
			break;
		pthread_mutex_unlock(&d->lock);
		sha256_update(&d->sha, d->len[i], d->mem + (size_t)i * BLOCK);
		pthread_mutex_lock(&d->lock);
		d->got++;
		pthread_cond_broadcast(&d->moved);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static void digest_begin(struct digest *d, int on)
{
	*d = (struct digest){ .mem = peer_memory((size_t)SLOTS * BLOCK), .on = on };
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->moved, NULL);
	sha256_init(&d->sha);
	if (on && pthread_create(&d->thread, NULL, digest_thread, d))
		peer_die("thread");
}

/* A free block. */
static uint8_t *digest_block(struct digest *d)
{
	pthread_mutex_lock(&d->lock);
	while (d->on && d->put - d->got == SLOTS)
		pthread_cond_wait(&d->moved, &d->lock);
	pthread_mutex_unlock(&d->lock);
	return d->mem + (size_t)(d->put % SLOTS) * BLOCK;
}

/* It has @len octets; 0: the last one. */
static void digest_put(struct digest *d, size_t len)
{
	pthread_mutex_lock(&d->lock);
	d->len[d->put++ % SLOTS] = len;
	pthread_cond_broadcast(&d->moved);
	pthread_mutex_unlock(&d->lock);
}

static void digest_end(struct digest *d)
{
	digest_block(d);
	digest_put(d, 0);
	if (d->on)
		pthread_join(d->thread, NULL);
}

static int make_unlinked_file(char *path)
{
	int fd = mkstemp(path);

	if (fd < 0 || unlink(path))
		peer_die(path);
	return fd;
}

static void write_file_octets(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n <= 0)
			peer_die("write");
		p += n;
		len -= (size_t)n;
	}
}

static size_t read_up_to(int fd, uint8_t *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, p + at, len - at);

		if (n < 0)
			peer_die("read");
		if (!n)
			break;
		at += (size_t)n;
	}
	return at;
}

/* @len octets of @from, or all of them, to @to. */
static void move_file_octets(int from, int to, size_t len, int on)
{
	struct digest d;

	digest_begin(&d, on);
	while (len) {
		uint8_t *p = digest_block(&d);
		size_t n = read_up_to(from, p, len < BLOCK ? len : BLOCK);

		if (!n)
			peer_die("too short");
		write_file_octets(to, p, n);
		digest_put(&d, n);
		len -= n;
	}
	digest_end(&d);
	free(d.mem);
}

static void tcp_pair(int fd[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof sa;
	int l = socket(AF_INET, SOCK_STREAM, 0);

	fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (l < 0 || bind(l, (struct sockaddr *)&sa, len) || listen(l, 1) ||
	    getsockname(l, (struct sockaddr *)&sa, &len) ||
	    connect(fd[1], (struct sockaddr *)&sa, len))
		peer_die("connect");
	fd[0] = accept(l, NULL, NULL);
	if (fd[0] < 0)
		peer_die("accept");
	close(l);
}

/* The other side: each file it gets is a new one, and answered with one octet. */
static void serve_files(int fd, const struct peer_args *a, int on)
{
	uint8_t more;

	while (read_up_to(fd, &more, 1)) {
		char path[] = "/dev/shm/peer_file-XXXXXX";
		int to = make_unlinked_file(path);

		move_file_octets(fd, to, a->size, on);
		close(to);
		write_file_octets(fd, &more, 1);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "sha256|none");
	char path[] = "/dev/shm/peer_file-XXXXXX";
	int on = !strcmp(a.mode, "sha256"), fd[2], from = make_unlinked_file(path);
	uint8_t *mem = peer_memory(a.size), one = 1;
	uint64_t ops = 0;
	double begin;
	pid_t child;

	write_file_octets(from, mem, a.size);
	tcp_pair(fd);
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		close(fd[1]);
		serve_files(fd[0], &a, on);
	}
	close(fd[0]);
	begin = peer_now();
	do {
		if (lseek(from, 0, SEEK_SET))
			peer_die("lseek");
		write_file_octets(fd[1], &one, 1);
		move_file_octets(from, fd[1], a.size, on);
		if (read_up_to(fd[1], &one, 1) != 1)
			peer_die("the other side");
		ops++;
	} while (peer_now() - begin < a.seconds);
	begin = peer_now() - begin;
	close(fd[1]);
	peer_report_both(&a, ops, begin, child);
	return 0;
}
