/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of the drop-in.  An even first octet: what follows is one from the wire; what is taken is
 * the same when it is written again.  An odd one: a script of messages, acknowledgements and time; a
 * peer is never waited for longer than it may be, nor is more on its way than a window.
 */
#include "fuzz.h"
#include "verbs/ud/vd_ud_in.h"
#include <string.h>

#define WINDOW 128
#define WAIT   200

static void from_the_wire(const uint8_t *data, size_t size)
{
	uint8_t *copy = fuzz_exact(data, size), again[UD_HEADER];
	struct ud_header h;

	if (ud_get(copy, size, &h)) {
		ud_put(&h, again);
		FUZZ_CHECK(size >= UD_HEADER && !memcmp(copy, again, UD_HEADER));
		FUZZ_CHECK(size <= UD_HEADER + UD_MTU && h.src <= VD_QPN_MASK);
		FUZZ_CHECK(h.type == UD_DATA || size == ud_cm_len(h.type, h.pd_len));
	}
	free(copy);
}

static void send_one_ud_fuzz(struct vd_ud_qp *u, const struct ud_addr *to, size_t len, uint64_t now)
{
	struct ud_peer *peer = ud_peer_of(u, to);
	struct ud_header h = { 0 };
	uint64_t retry_at = 0;

	FUZZ_CHECK(peer && peer->port == to->port && u->npeers <= UD_PEERS);
	if (!ud_peer_ready(peer, len, now, &retry_at)) {
		FUZZ_CHECK(retry_at > now && retry_at <= now + WAIT);
		FUZZ_CHECK((uint16_t)(peer->seq - peer->acked) > WINDOW - 1 - UD_MTU / 512);
		return;
	}
	ud_peer_sent(peer, len, &h);
	FUZZ_CHECK(h.seq == peer->seq);
	FUZZ_CHECK(now < peer->open_until || (uint16_t)(peer->seq - peer->acked) <= WINDOW);
}

static void script(struct ddps_rbuf *in)
{
	struct vd_ud_qp u = { 0 };
	struct ud_addr a = { 0 };
	uint64_t now = 1;

	while (fuzz_more(in)) {
		uint8_t what = ddps_rbuf_u8(in);
		uint16_t n = ddps_rbuf_u16(in);

		a.port = 1 + (what >> 2);
		if ((what & 3) == 0)
			now += n % 512;
		else if ((what & 3) == 1)
			ud_peer_acked(&u, &a, n);
		else
			send_one_ud_fuzz(&u, &a, n % (UD_MTU + 1), now);
	}
	free(u.peers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in;

	if (!size)
		return 0;
	if (data[0] & 1) {
		in = ddps_rbuf_init(data + 1, size - 1);
		script(&in);
	} else {
		from_the_wire(data + 1, size - 1);
	}
	return 0;
}
