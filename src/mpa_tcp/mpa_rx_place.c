/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU receiver: payload that is read straight to its place. */
#include "mpa_tcp/mpa_crc.h"
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_rx.h"
#include <string.h>

/* Copy payload that is in hand already.  false: the sink does not want the rest. */
static bool place_payload(struct ddps_mpa_rx *rx, const uint8_t *p, size_t n)
{
	while (n) {
		struct iovec iov[8];
		int k = rx->sink->direct_iov(rx->user, rx->pay_off, iov, sizeof iov / sizeof *iov);
		size_t before = n;

		for (int i = 0; i < k && n; i++) {
			size_t len = iov[i].iov_len < n ? iov[i].iov_len : n;

			if (!len)
				continue;
			memcpy(iov[i].iov_base, p, len);
			p += len;
			n -= len;
			rx->pay_off += len;
		}
		if (n == before)
			return false;
	}
	return true;
}

bool ddps_mpa_rx_place(struct ddps_mpa_rx *rx, const uint8_t *p, size_t n, size_t ulpdu)
{
	size_t have = n - DDPS_MPA_LEN_FIELD, hdr;

	/* Never before a CRC was verified; markers would have to be stripped first. */
	if (rx->crc || rx->markers || have >= ulpdu)
		return false;
	hdr = rx->sink->direct(rx->user, p + DDPS_MPA_LEN_FIELD, have, ulpdu);
	if (!hdr || hdr > have)
		return false;
	rx->placing = true;
	rx->pay_len = ulpdu - hdr;
	rx->pay_off = 0;
	rx->tail_off = 0;
	rx->tail_len = (uint8_t)(ddps_mpa_pad(ulpdu) + DDPS_MPA_CRC_LEN);
	if (!place_payload(rx, p + DDPS_MPA_LEN_FIELD + hdr, have - hdr))
		rx->dead = true;
	return true;
}

int ddps_mpa_rx_want_placed(struct ddps_mpa_rx *rx, struct iovec *iov, int max)
{
	size_t left = rx->pay_len - rx->pay_off;
	int k = 0;

	rx->pay_asked = 0;
	if (!left)
		return 0;
	k = rx->sink->direct_iov(rx->user, rx->pay_off, iov, max);
	for (int i = 0; i < k; i++) {
		if (iov[i].iov_len > left)
			iov[i].iov_len = left;
		left -= iov[i].iov_len;
		rx->pay_asked += iov[i].iov_len;
	}
	if (!rx->pay_asked) {
		rx->dead = true;
		return 0;
	}
	return k;
}

size_t ddps_mpa_rx_got_placed(struct ddps_mpa_rx *rx, size_t n)
{
	size_t pay = n < rx->pay_asked ? n : rx->pay_asked;
	size_t missing = (size_t)(rx->tail_len - rx->tail_off), tail;

	rx->pay_off += pay;
	n -= pay;
	tail = n < missing ? n : missing;
	rx->tail_off = (uint8_t)(rx->tail_off + tail);
	n -= tail;
	if (tail < missing)
		return 0;
	rx->placing = false;
	rx->fpdus++;
	rx->share -= rx->share != 0;
	if (rx->sink->direct_end(rx->user) < 0)
		rx->dead = true;
	return n;
}
