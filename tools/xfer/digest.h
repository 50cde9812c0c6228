/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_DIGEST_H
#define SESSCTL_DIGEST_H
/*
 * What both ends of a transfer compute over a file, to find it equal: by a thread of its own, so that
 * the wire and the disk need not wait for it.
 */
#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

/* As PUT_BY and GET_BY name it. */
enum digest_kind {
	DIGEST_SHA256,
	DIGEST_CRC32C, /* finds accidents; whoever wants to deceive can make it fit */
	DIGEST_KINDS
};

#define DIGEST_LEN 32 /* on the wire: a shorter one has zeros behind it */

struct digest {
	enum digest_kind kind;
	struct sha256_ctx sha;
	uint32_t crc;
	uint64_t added, done; /* pieces given to a hasher, and those that it is through with */
	int failed;	      /* errno: a piece could not be read */
};

void digest_init(struct digest *d, enum digest_kind kind);
void digest_add(struct digest *d, const uint8_t *p, size_t n);

/*
 * The thread, for any number of digests.  NULL: there is none, and pieces are computed when added,
 * which for a CRC costs less than to hand them over.
 */
struct hasher;

struct hasher *hasher_new(enum digest_kind kind);
void hasher_free(struct hasher *h); /* when it is through with all */

/*
 * The next piece of @d: octets that stay as they are until it is through with them, or octets that
 * were written to a file, from where the thread reads them again: a peer may write to @p by then.
 * Waits while HASHER_LAG pieces of all digests together are under way.
 */
#define HASHER_LAG 8
void hasher_add(struct hasher *h, struct digest *d, const uint8_t *p, size_t n);
void hasher_add_file(struct hasher *h, struct digest *d, const uint8_t *p, size_t n, int fd,
		     uint64_t off);

/* Wait until it is through with the first @n pieces of @d. */
void hasher_wait(struct hasher *h, struct digest *d, uint64_t n);

/* Wait for all pieces.  Return: 0, or -1 with errno: a file could not be read again. */
int hasher_final(struct hasher *h, struct digest *d, uint8_t out[DIGEST_LEN]);

/* "sha256", "crc32c": the words of --digest and the members of --json. */
const char *digest_name(enum digest_kind kind);
/* Octets of it that are not always zero. */
size_t digest_len(enum digest_kind kind);

#endif
