/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The small decoders, one of them by the first octet: what is decoded is encoded to octets that are
 * decoded to the same, and what is borrowed lies within the input.
 */
#include "fuzz.h"
#include "ipoib_cm/ib/pkt.h"
#include "ipoib_cm/wire/wire.h"
#include "rdmap/rdmap_wire.h"
#include "sctp_ddp/sd_wire.h"
#include <ddpsess/advert.h>
#include <ddpsess/ipoib_cm.h>

static bool is_inside(const uint8_t *at, size_t n, const uint8_t *p, size_t len)
{
	return at >= p && at + n <= p + len;
}

static void ddp(const uint8_t *p, size_t len)
{
	struct ddps_ddp_hdr h = { 0 }, again = { 0 };
	uint8_t out[DDPS_DDP_UNTAGGED_LEN];
	int n = ddps_ddp_decode(&h, p, len);

	if (n < 0)
		return;
	FUZZ_CHECK((size_t)n <= len && (size_t)n == ddps_ddp_hdr_len(p[0]));
	FUZZ_CHECK(h.last == ddps_ddp_is_last(p[0]));
	FUZZ_CHECK(ddps_ddp_encode(&h, out) == (size_t)n);
	FUZZ_CHECK(ddps_ddp_decode(&again, out, (size_t)n) == n);
	FUZZ_CHECK(!memcmp(out + 1, p + 1, (size_t)n - 1)); /* but for reserved bits */
	FUZZ_CHECK(again.tagged == h.tagged && again.last == h.last && again.to == h.to &&
		   again.stag == h.stag && again.qn == h.qn && again.msn == h.msn &&
		   again.mo == h.mo && again.ulp_word == h.ulp_word);
}

static void requests(const uint8_t *p, size_t len)
{
	struct ddps_rreq q;
	struct ddps_areq a;
	struct ddps_aresp r;
	struct ddps_advert ad;
	uint8_t out[DDPS_AREQ_LEN];

	if (len >= DDPS_ADVERT_LEN && !ddps_advert_decode(&ad, p, DDPS_ADVERT_LEN)) {
		ddps_advert_encode(out, &ad);
		FUZZ_CHECK(!memcmp(out, p, DDPS_ADVERT_LEN));
	}

	if (len >= DDPS_RREQ_LEN) {
		ddps_rreq_decode(&q, p);
		ddps_rreq_encode(&q, out);
		FUZZ_CHECK(!memcmp(out, p, DDPS_RREQ_LEN));
	}
	if (len >= DDPS_ARESP_LEN) {
		ddps_aresp_decode(&r, p);
		ddps_aresp_encode(&r, out);
		FUZZ_CHECK(!memcmp(out, p, DDPS_ARESP_LEN));
	}
	if (len >= DDPS_AREQ_LEN) {
		ddps_areq_decode(&a, p);
		FUZZ_CHECK(a.aop <= 15);
		ddps_areq_encode(&a, out);
		FUZZ_CHECK(!memcmp(out + 4, p + 4, DDPS_AREQ_LEN - 4));
	}
}

static void check_terminate_decoder(const uint8_t *p, size_t len)
{
	struct ddps_term_msg t = { 0 }, again = { 0 };
	uint8_t out[DDPS_TERM_LEN_MAX];
	size_t n;
	int err = ddps_term_decode(&t, p, len);

	FUZZ_CHECK(!err || err == DDPS_E_TRUNCATED);
	FUZZ_CHECK(!t.ddp || is_inside(t.ddp, t.ddp_len, p, len));
	FUZZ_CHECK(!t.rreq || (t.ddp && is_inside(t.rreq, DDPS_RREQ_LEN, p, len)));
	if (err)
		return;
	n = ddps_term_encode(&t, out);
	FUZZ_CHECK(n <= sizeof out);
	FUZZ_CHECK(!ddps_term_decode(&again, out, n));
	/* Without flags a triple alone may look like one that soft-iWARP has written. */
	FUZZ_CHECK(!again.swapped || !out[2]);
	FUZZ_CHECK(again.swapped ||
		   (again.triple.layer == t.triple.layer && again.triple.etype == t.triple.etype));
	FUZZ_CHECK(again.triple.code == t.triple.code);
	FUZZ_CHECK(again.has_len == t.has_len && (!t.has_len || again.seg_len == t.seg_len));
	FUZZ_CHECK(!again.ddp == !t.ddp && again.ddp_len == t.ddp_len);
	FUZZ_CHECK(!t.ddp || !memcmp(again.ddp, t.ddp, t.ddp_len));
	FUZZ_CHECK(!again.rreq == !t.rreq);
}

static void sctp(const uint8_t *p, size_t len)
{
	struct ddps_sd_msg m = { 0 };
	uint8_t out[DDPS_SD_CONTROL_LEN];

	if (!len || ddps_sd_decode(&m, p[0] & 1 ? 16 : 17, p + 1, len - 1))
		return;
	FUZZ_CHECK(!m.len || is_inside(m.data, m.len, p + 1, len - 1));
	FUZZ_CHECK(m.segment == (p[0] & 1));
	if (m.segment)
		return;
	ddps_sd_encode_control(out, m.ssn, m.code);
	FUZZ_CHECK(!memcmp(out, p + 1, sizeof out));
	FUZZ_CHECK(m.bad || m.len <= DDPS_SD_PD_MAX);
	FUZZ_CHECK(!ddps_sd_is_initiate(&m) || m.bad || ddps_sd_pd_ok(m.code, m.len));
}

static void check_arp_decoder(const uint8_t *p, size_t len)
{
	struct ddps_ipoib_arp a, again;
	uint8_t out[DDPS_IPOIB_ARP_LEN];

	memset(&a, 0, sizeof a);
	memset(&again, 0, sizeof again);
	if (ddps_ipoib_arp_decode(&a, p, len))
		return;
	FUZZ_CHECK(len >= sizeof out && !ddps_ipoib_arp_encode(out, &a));
	FUZZ_CHECK(!ddps_ipoib_arp_decode(&again, out, sizeof out));
	FUZZ_CHECK(!memcmp(&a, &again, sizeof a));
}

static void options(const uint8_t *p, size_t len)
{
	struct ddps_ipoib_lladdr a = { 0 }, again = { 0 };
	uint8_t out[DDPS_IPOIB_ND_LEN], type = len && p[0] & 1 ? 1 : 2;

	if (ddps_ipoib_nd_find(&a, type, p, len) != 1)
		return;
	FUZZ_CHECK(len >= sizeof out && !ddps_ipoib_nd_encode(out, type, &a));
	FUZZ_CHECK(ddps_ipoib_nd_find(&again, type, out, sizeof out) == 1);
	FUZZ_CHECK(!ddps_ipoib_lladdr_cmp(&a, &again) && a.flags == again.flags);
}

static void check_encap_decoder(const uint8_t *p, size_t len)
{
	const uint8_t *packet;
	size_t n;
	uint16_t type;
	uint8_t out[DDPS_IPOIB_ENCAP_LEN];

	if (ddps_ipoib_encap_decode(&type, &packet, &n, p, len))
		return;
	FUZZ_CHECK(n + sizeof out == len && is_inside(packet, n, p, len));
	ddps_ipoib_encap_encode(out, type);
	FUZZ_CHECK(!memcmp(out, p, 2));
}

static void check_packet_decoder(const uint8_t *p, size_t len)
{
	struct ddps_ib_pkt k = { 0 }, again = { 0 };
	uint8_t out[DDPS_IB_HEAD_MAX + DDPS_IB_ICRC_LEN] = { 0 };
	bool send;
	size_t n;

	if (ddps_ib_pkt_decode(&k, p, len))
		return;
	FUZZ_CHECK(k.qpn && k.pad <= 3 && is_inside(k.data, k.len, p, len));
	/* headers of what is sent: RC and UC Sends, ACKs, datagrams; behind them the pad */
	send = (k.opcode & DDPS_IB_OPERATION) <= DDPS_IB_SEND_ONLY &&
	       (k.opcode & DDPS_IB_OPERATION) != DDPS_IB_SEND_LAST_IMM;
	if (!send && k.opcode != DDPS_IB_ACK)
		return;
	k.len = 0;
	n = ddps_ib_pkt_encode(out, &k);
	FUZZ_CHECK(!ddps_ib_pkt_decode(&again, out, n + DDPS_IB_ICRC_LEN));
	FUZZ_CHECK(again.opcode == k.opcode && again.qpn == k.qpn && again.psn == k.psn &&
		   again.pkey == k.pkey && again.ack_req == k.ack_req && again.qkey == k.qkey &&
		   again.src_qpn == k.src_qpn && again.syndrome == k.syndrome &&
		   again.msn == k.msn && !again.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const decoders[])(const uint8_t *, size_t) = { ddp,
								     requests,
								     check_terminate_decoder,
								     sctp,
								     check_arp_decoder,
								     options,
								     check_encap_decoder,
								     check_packet_decoder };
	uint8_t *exact;

	if (!size)
		return 0;
	exact = fuzz_exact(data + 1, size - 1);
	decoders[data[0] % (sizeof decoders / sizeof *decoders)](exact, size - 1);
	free(exact);
	return 0;
}
