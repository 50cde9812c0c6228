/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TLS_JUDGE_H
#define DDPS_TLS_JUDGE_H
/*
 * A connection in memory, of which a library makes the handshake of both ends.  Then one end's keys are taken over
 * by our records; the other is the library's own read and write.
 */
#include "secure/record/record.h"
#include <stdbool.h>

struct octets {
	uint8_t *p;
	size_t at, len, room;
};

/* Octets that are on their way. */
void octets_put(struct octets *o, const void *p, size_t n);
size_t octets_take(struct octets *o, void *p, size_t n);
void octets_free(struct octets *o);

struct tls_judge {
	const struct tls_judge_ops *ops;
	struct octets to_us, to_lib;
	bool we_are_client;
	enum ddps_suite suite;
	unsigned tickets; /* that a server of the library sends */
	size_t limit;	  /* 0, or the most that the library's end takes in a record */
	unsigned pad;	  /* its records are padded to a multiple of this, if it can */
	struct ddps_rec_config conf;
	void *lib;
};

enum { JUDGE_AGAIN = -1, JUDGE_ERROR = -2 };

struct tls_judge_ops {
	const char *name;
	bool pads;
	/* Make the handshake, fill in conf (but aead), free the end that is ours. */
	void (*begin)(struct tls_judge *j);
	void (*send)(struct tls_judge *j, const void *p, size_t n);
	/* Octets, 0 after close_notify, JUDGE_AGAIN, JUDGE_ERROR (then it has sent an alert). */
	int (*recv)(struct tls_judge *j, void *p, size_t n);
	void (*update)(struct tls_judge *j, bool ask);
	void (*close)(struct tls_judge *j);
	void (*free)(struct tls_judge *j);
};

extern const struct tls_judge_ops tls_judge_gnutls, tls_judge_openssl;

#endif
