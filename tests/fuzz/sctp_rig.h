/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_SCTP_RIG_H
#define FUZZ_SCTP_RIG_H
/* What the targets that drive SCTP engines share. */
#include "fuzz.h"
#include "sctp/sctp_in.h"

/* An engine's "random" octets, of a seed. */
static inline void sctp_octets(uint64_t *seed, uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)((*seed = *seed * 6364136223846793005u + 1) >> 56);
}

/* All that @e has to send now, packet by packet, each with the right checksum. */
static inline void sctp_output(struct ddps_sctp *e, uint64_t now,
			       void (*take)(void *user, const uint8_t *packet, size_t len),
			       void *user)
{
	static uint8_t head[8192], all[1 << 17];
	struct iovec iov[32];
	struct ddps_sctp_out o = { .iov = iov,
				   .iov_max = 32,
				   .head = head,
				   .head_max = sizeof head,
				   .max_segs = 4,
				   .max_len = 65507 };

	for (unsigned n = 0; ddps_sctp_output(e, &o, now); n++) {
		uint8_t *to = all;

		FUZZ_CHECK(n < 10000 && o.nsegs && o.len <= sizeof all);
		for (unsigned i = 0; i < o.niov; to += iov[i++].iov_len)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		for (size_t at = 0; at < o.len; at += o.seg_size) {
			size_t len = o.len - at < o.seg_size ? o.len - at : o.seg_size;

			FUZZ_CHECK(ddps_sc_crc_ok(all + at, len));
			take(user, all + at, len);
		}
	}
}

#endif
