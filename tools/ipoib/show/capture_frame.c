/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures of IPoIB frames: datagrams with their GRH, connected messages cut into packets. */
#include "ipoib/show/capture.h"
#include "ipoib/show/capture_in.h"
#include <errno.h>
#include <string.h>

#define PATH_MTU     2048u
#define MTU_MAX	     4096u
#define IB_MAX	     (LRH_LEN + GRH_LEN + BTH_LEN + DETH_LEN + 4096 + 3 + ICRC_LEN + VCRC_LEN)
#define GRH_NEXT_BTH 0x1b
#define HOP_LIMIT    1

/* Of a Send of reliable connections; those of unreliable ones have UC_BIT too. */
#define SEND_FIRST  0x00
#define SEND_MIDDLE 0x01
#define SEND_LAST   0x02
#define SEND_ONLY   0x04
#define UC_BIT	    0x20

/* One packet of a frame. */
struct part {
	const struct capture_frame *m;
	uint8_t opcode;
	const uint8_t *data;
	unsigned len, pad;
};

static void put_lrh(struct octets *w, const struct part *p, unsigned ib_len)
{
	octets_be(w, 0, 1);
	octets_be(w, p->m->connected ? LNH_BTH : LNH_GRH, 1);
	octets_be(w, p->m->dlid, 2);
	octets_be(w, (ib_len - VCRC_LEN) / 4, 2);
	octets_be(w, p->m->slid, 2);
}

static void put_grh(struct octets *w, const struct part *p)
{
	octets_be(w, 6u << 28, 4);
	octets_be(w, BTH_LEN + DETH_LEN + p->len + p->pad + ICRC_LEN, 2);
	octets_be(w, GRH_NEXT_BTH, 1);
	octets_be(w, HOP_LIMIT, 1);
	octets_put(w, p->m->from, DDPS_IPOIB_GID_LEN);
	octets_put(w, p->m->to, DDPS_IPOIB_GID_LEN);
}

static unsigned put_frame_packet(uint8_t *out, const struct part *p)
{
	const struct capture_frame *m = p->m;
	unsigned heads = m->connected ? LRH_LEN + BTH_LEN : LRH_LEN + GRH_LEN + BTH_LEN + DETH_LEN;
	unsigned ib_len = heads + p->len + p->pad + ICRC_LEN + VCRC_LEN;
	struct octets w = octets_at(out, CAPTURE_ERF + IB_MAX);

	capture_put_record(&w, m->time_ns, ib_len);
	put_lrh(&w, p, ib_len);
	if (!m->connected)
		put_grh(&w, p);
	octets_be(&w, p->opcode, 1);
	octets_be(&w, p->pad << 4, 1);
	octets_be(&w, m->pkey, 2);
	octets_be(&w, m->to_qpn, 4);
	octets_be(&w, 0, 4);
	if (!m->connected) {
		octets_be(&w, m->qkey, 4);
		octets_be(&w, m->from_qpn, 4);
	}
	octets_put(&w, p->data, p->len);
	octets_be(&w, 0, p->pad);
	octets_be(&w, 0, ICRC_LEN);
	octets_be(&w, 0, VCRC_LEN);
	return CAPTURE_ERF + ib_len;
}

static uint8_t get_frame_opcode(const struct capture_frame *m, size_t at, size_t len)
{
	bool last = at + len == m->len;
	uint8_t op = !at ? (last ? SEND_ONLY : SEND_FIRST) : last ? SEND_LAST : SEND_MIDDLE;

	if (!m->connected)
		return UD_SEND;
	return m->uc ? op | UC_BIT : op;
}

int capture_write_frame(FILE *f, const struct capture_frame *m)
{
	uint8_t record[CAPTURE_ERF + IB_MAX];
	size_t at = 0, mtu = !m->connected ? MTU_MAX : m->mtu ? m->mtu : PATH_MTU;

	if (mtu > MTU_MAX || (!m->connected && m->len > MTU_MAX)) {
		errno = EMSGSIZE;
		return -1;
	}
	do {
		size_t left = m->len - at, len = left > mtu ? mtu : left, size;
		struct part p = { .m = m,
				  .opcode = get_frame_opcode(m, at, len),
				  .data = m->frame + at,
				  .len = (unsigned)len,
				  .pad = (unsigned)-len & 3 };

		size = put_frame_packet(record, &p);
		if (fwrite(record, size, 1, f) != 1)
			return -1;
		at += len;
	} while (at < m->len);
	return fflush(f) ? -1 : 0;
}
