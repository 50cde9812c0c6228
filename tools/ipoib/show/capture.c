/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of MADs, written: pcap files with ERF records of InfiniBand packets. */
#include "cli/safe.h"
#include "ipoib/show/capture.h"
#include "ipoib/show/capture_in.h"
#include <errno.h>

#define PCAP_NANOS 0xa1b23c4du
#define LINK_ERF   197

#define ERF_TYPE_IB 21

#define IB_LEN (LRH_LEN + BTH_LEN + DETH_LEN + DDPS_CM_MAD_LEN + ICRC_LEN + VCRC_LEN)

#define NS_PER_S 1000000000ull

_Static_assert(CAPTURE_RECORD == 16 + ERF_LEN + IB_LEN, "the record's parts");

/* ---- writing ---- */

void capture_encode_header(uint8_t out[CAPTURE_HEADER])
{
	struct octets w = octets_at(out, CAPTURE_HEADER);

	octets_be(&w, PCAP_NANOS, 4);
	octets_be(&w, 2, 2); /* version 2.4 */
	octets_be(&w, 4, 2);
	octets_be(&w, 0, 8); /* UTC */
	octets_be(&w, 65535, 4);
	octets_be(&w, LINK_ERF, 4);
}

/* ERF times are the one little endian number here: seconds and their fraction, 32 bits each. */
static void put_erf_time(struct octets *w, uint64_t ns)
{
	uint64_t t = ns / NS_PER_S << 32 | (ns % NS_PER_S << 32) / NS_PER_S;

	for (unsigned i = 0; i < 8; i++)
		octets_be(w, t >> 8 * i & 0xff, 1);
}

static void put_ib(struct octets *w, const struct capture_mad *m)
{
	octets_be(w, 0, 1); /* LRH: virtual lane 0 */
	octets_be(w, (uint64_t)(m->sl << 4 | LNH_BTH), 1);
	octets_be(w, m->dlid, 2);
	octets_be(w, (IB_LEN - VCRC_LEN) / 4, 2);
	octets_be(w, m->slid, 2);
	octets_be(w, UD_SEND, 1); /* BTH */
	octets_be(w, 0, 1);
	octets_be(w, m->pkey, 2);
	octets_be(w, 1, 4); /* to QP 1 */
	octets_be(w, 0, 4);
	octets_be(w, DDPS_CM_QKEY, 4); /* DETH */
	octets_be(w, 1, 4);	       /* from QP 1 */
	octets_put(w, m->mad, DDPS_CM_MAD_LEN);
	octets_be(w, 0, ICRC_LEN);
	octets_be(w, 0, VCRC_LEN);
}

void capture_put_record(struct octets *w, uint64_t time_ns, unsigned len)
{
	octets_be(w, time_ns / NS_PER_S, 4);
	octets_be(w, time_ns % NS_PER_S, 4);
	octets_be(w, ERF_LEN + len, 4);
	octets_be(w, ERF_LEN + len, 4);
	put_erf_time(w, time_ns);
	octets_be(w, ERF_TYPE_IB, 1);
	octets_be(w, 4, 1); /* records have various lengths */
	octets_be(w, ERF_LEN + len, 2);
	octets_be(w, 0, 2); /* none lost */
	octets_be(w, len, 2);
}

void capture_encode(uint8_t out[CAPTURE_RECORD], const struct capture_mad *m)
{
	struct octets w = octets_at(out, CAPTURE_RECORD);

	capture_put_record(&w, m->time_ns, IB_LEN);
	put_ib(&w, m);
}

FILE *capture_create(const char *path)
{
	uint8_t header[CAPTURE_HEADER];
	FILE *f = safe_create(path, 0600); /* payload is for this user */

	capture_encode_header(header);
	if (f && (fwrite(header, sizeof header, 1, f) != 1 || fflush(f))) {
		int err = errno;

		fclose(f);
		errno = err;
		return NULL;
	}
	return f;
}

int capture_write(FILE *f, const struct capture_mad *m)
{
	uint8_t record[CAPTURE_RECORD];

	capture_encode(record, m);
	return fwrite(record, sizeof record, 1, f) == 1 && !fflush(f) ? 0 : -1;
}
