/* SPDX-License-Identifier: BSD-2-Clause */
/* sessctl: digests of files, and the thread that computes them. */
#include "xfer/digest.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE  (3u * 65536 + 5)
#define PIECE 40000u

static int new_sessctl_digest_file(const uint8_t *p, size_t n)
{
	char name[] = "/tmp/ddps-digest-XXXXXX";
	int fd = mkstemp(name);

	cr_assert_geq(fd, 0);
	unlink(name);
	cr_assert_eq(write(fd, p, n), (ssize_t)n);
	return fd;
}

static uint8_t *make_sessctl_digest_octets(void)
{
	uint8_t *p = malloc(SIZE);

	for (size_t i = 0; i < SIZE; i++)
		p[i] = (uint8_t)(i * 7 + i / 251);
	return p;
}

Test(sessctl_digest, values_that_are_known)
{
	static const uint8_t crc[DIGEST_LEN] = { 0xe3, 0x06, 0x92, 0x83 };
	static const uint8_t sha[] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };
	uint8_t got[DIGEST_LEN];
	struct digest d;

	digest_init(&d, DIGEST_CRC32C);
	digest_add(&d, (const uint8_t *)"12345", 5);
	digest_add(&d, (const uint8_t *)"6789", 4);
	cr_assert_eq(hasher_final(NULL, &d, got), 0);
	cr_expect_arr_eq(got, crc, sizeof crc);
	digest_init(&d, DIGEST_SHA256);
	digest_add(&d, (const uint8_t *)"abc", 3);
	cr_assert_eq(hasher_final(NULL, &d, got), 0);
	cr_expect_arr_eq(got, sha, sizeof sha);
}

/* Two digests by one thread, from memory and from a file, and one without it. */
Test(sessctl_digest, the_thread_finds_the_same)
{
	struct hasher *h = hasher_new(DIGEST_SHA256);
	uint8_t *p = make_sessctl_digest_octets(), want[DIGEST_LEN], got[2][DIGEST_LEN];
	struct digest alone, d[2];
	int fd = new_sessctl_digest_file(p, SIZE);

	cr_assert_not_null(h);
	digest_init(&alone, DIGEST_SHA256);
	digest_init(&d[0], DIGEST_SHA256);
	digest_init(&d[1], DIGEST_SHA256);
	for (size_t at = 0, n; at < SIZE; at += n) {
		n = SIZE - at < PIECE ? SIZE - at : PIECE;
		hasher_add(NULL, &alone, p + at, n);
		hasher_add(h, &d[0], p + at, n);
		hasher_add_file(h, &d[1], NULL, n, fd, at);
	}
	hasher_wait(h, &d[0], 1);
	cr_expect_eq(hasher_final(NULL, &alone, want), 0);
	cr_expect_eq(hasher_final(h, &d[0], got[0]), 0);
	cr_expect_eq(hasher_final(h, &d[1], got[1]), 0);
	cr_expect_eq(d[0].done, d[0].added);
	cr_expect_arr_eq(got[0], want, sizeof want);
	cr_expect_arr_eq(got[1], want, sizeof want);
	hasher_free(h);
	close(fd);
	free(p);
}

/* What counts is what the file has, not what the peer may have written over by now. */
Test(sessctl_digest, the_thread_reads_the_file_again)
{
	struct hasher *h = hasher_new(DIGEST_SHA256);
	uint8_t *p = make_sessctl_digest_octets(), want[DIGEST_LEN], got[DIGEST_LEN];
	struct digest alone, d;
	int fd = new_sessctl_digest_file(p, SIZE);

	digest_init(&alone, DIGEST_SHA256);
	hasher_add(NULL, &alone, p, SIZE);
	cr_expect_eq(hasher_final(NULL, &alone, want), 0);
	memset(p, 0, SIZE);
	digest_init(&d, DIGEST_SHA256);
	hasher_add_file(h, &d, p, SIZE, fd, 0);
	cr_expect_eq(hasher_final(h, &d, got), 0);
	cr_expect_arr_eq(got, want, sizeof want);
	hasher_free(h);
	close(fd);
	free(p);
}

Test(sessctl_digest, a_file_that_became_shorter_is_reported)
{
	struct hasher *h = hasher_new(DIGEST_SHA256);
	uint8_t *p = make_sessctl_digest_octets(), got[DIGEST_LEN];
	struct digest d;
	int fd = new_sessctl_digest_file(p, SIZE - 1);

	digest_init(&d, DIGEST_SHA256);
	hasher_add_file(h, &d, p, SIZE, fd, 0);
	cr_expect_eq(hasher_final(h, &d, got), -1);
	cr_expect_eq(errno, EIO);
	hasher_free(h);
	close(fd);
	free(p);
}

/* More pieces than it takes at a time; freed while it has work. */
Test(sessctl_digest, ends_what_it_was_given)
{
	struct hasher *h = hasher_new(DIGEST_SHA256);
	uint8_t *p = make_sessctl_digest_octets();
	struct digest d;

	cr_assert_null(hasher_new(DIGEST_CRC32C), "a CRC needs none");
	digest_init(&d, DIGEST_SHA256);
	for (unsigned i = 0; i < 4 * HASHER_LAG; i++)
		hasher_add(h, &d, p, SIZE);
	hasher_free(h);
	cr_expect_eq(d.done, 4 * HASHER_LAG);
	free(p);
}
