/* SPDX-License-Identifier: BSD-2-Clause */
/* Digests of files, and the thread that computes them. */
#include "xfer/digest.h"
#include "xfer/proto.h"
#include <errno.h>
#include <isa-l/crc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (1u << 30) /* ISA-L takes an int */

#define READ_LEN 65536 /* octets of a file that are read together */

void digest_init(struct digest *d, enum digest_kind kind)
{
	*d = (struct digest){ .kind = kind, .crc = ~0u };
	sha256_init(&d->sha);
}

void digest_add(struct digest *d, const uint8_t *p, size_t n)
{
	if (d->kind == DIGEST_SHA256) {
		sha256_update(&d->sha, n, p);
		return;
	}
	for (size_t len; n; p += len, n -= len) {
		len = n < PIECE ? n : PIECE;
		/* it does not write to what is not const */
		d->crc = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, d->crc);
	}
}

static void digest_final(struct digest *d, uint8_t out[DIGEST_LEN])
{
	uint32_t crc = ~d->crc;

	if (d->kind == DIGEST_SHA256) {
		sha256_digest(&d->sha, DIGEST_LEN, out);
		return;
	}
	memset(out, 0, DIGEST_LEN);
	for (unsigned i = 0; i < sizeof crc; i++)
		out[i] = (uint8_t)(crc >> (8 * (sizeof crc - 1 - i)));
}

const char *digest_name(enum digest_kind kind)
{
	return kind == DIGEST_SHA256 ? "sha256" : "crc32c";
}

size_t digest_len(enum digest_kind kind)
{
	return kind == DIGEST_SHA256 ? SHA256_DIGEST_SIZE : sizeof(uint32_t);
}

/* ---- the thread ---- */

struct piece {
	struct digest *d;
	const uint8_t *p; /* NULL: of the file */
	int fd;
	uint64_t off;
	size_t n;
};

struct hasher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more, less;
	struct piece piece[HASHER_LAG];
	unsigned head, count; /* the one being worked on included */
	bool ends;
};

static void add_file(struct digest *d, const struct piece *w)
{
	uint8_t buf[READ_LEN];

	for (size_t at = 0, len; at < w->n && !d->failed; at += len) {
		ssize_t got;

		len = w->n - at < sizeof buf ? w->n - at : sizeof buf;
		got = file_read(w->fd, buf, len, w->off + at);
		if (got == (ssize_t)len)
			digest_add(d, buf, len);
		else
			d->failed = got < 0 ? errno : EIO;
	}
}

static void compute(const struct piece *w)
{
	if (w->p)
		digest_add(w->d, w->p, w->n);
	else
		add_file(w->d, w);
}

static void *run_hasher(void *arg)
{
	struct hasher *h = arg;

	pthread_mutex_lock(&h->lock);
	for (;;) {
		const struct piece *w = &h->piece[h->head];

		while (!h->count && !h->ends)
			pthread_cond_wait(&h->more, &h->lock);
		if (!h->count)
			break;
		pthread_mutex_unlock(&h->lock);
		compute(w);
		pthread_mutex_lock(&h->lock);
		w->d->done++;
		h->head = (h->head + 1) % HASHER_LAG;
		h->count--;
		pthread_cond_broadcast(&h->less);
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

struct hasher *hasher_new(enum digest_kind kind)
{
	struct hasher *h = kind == DIGEST_SHA256 ? calloc(1, sizeof *h) : NULL;
	sigset_t all, old;
	int err;

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->more, NULL);
	pthread_cond_init(&h->less, NULL);
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&h->thread, NULL, run_hasher, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		free(h);
		return NULL;
	}
	return h;
}

void hasher_free(struct hasher *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->ends = true;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	pthread_cond_destroy(&h->more);
	pthread_cond_destroy(&h->less);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static void add_piece(struct hasher *h, const struct piece *w)
{
	w->d->added++;
	if (!h) {
		compute(w);
		w->d->done++;
		return;
	}
	pthread_mutex_lock(&h->lock);
	while (h->count == HASHER_LAG)
		pthread_cond_wait(&h->less, &h->lock);
	h->piece[(h->head + h->count++) % HASHER_LAG] = *w;
	pthread_cond_signal(&h->more);
	pthread_mutex_unlock(&h->lock);
}

void hasher_add(struct hasher *h, struct digest *d, const uint8_t *p, size_t n)
{
	add_piece(h, &(struct piece){ .d = d, .p = p, .fd = -1, .n = n });
}

void hasher_add_file(struct hasher *h, struct digest *d, const uint8_t *p, size_t n, int fd,
		     uint64_t off)
{
	add_piece(h, &(struct piece){ .d = d, .p = h ? NULL : p, .fd = fd, .off = off, .n = n });
}

void hasher_wait(struct hasher *h, struct digest *d, uint64_t n)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	while (d->done < n)
		pthread_cond_wait(&h->less, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

int hasher_final(struct hasher *h, struct digest *d, uint8_t out[DIGEST_LEN])
{
	hasher_wait(h, d, d->added);
	digest_final(d, out);
	errno = d->failed;
	return d->failed ? -1 : 0;
}
