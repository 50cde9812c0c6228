/* SPDX-License-Identifier: BSD-2-Clause */
/* SCTP user messages of the DDP adaptation: octets <-> struct. */
#include "sctp_ddp/sd_wire.h"
#include "common/bytes.h"
#include <ddpsess/err.h>

/* Room kept for a SACK with one gap block in the same packet [5043-9-3]. */
#define CONTROL_CHUNK_ROOM 20

/* It may be missing in an Enhanced Reject. */
static bool needs_word(uint16_t code)
{
	return code == DDPS_SD_ENH_INITIATE || code == DDPS_SD_ENH_ACCEPT;
}

bool ddps_sd_pd_ok(uint16_t code, size_t len)
{
	if (len > DDPS_SD_PD_MAX) /* [5043-5.2.3-3] */
		return false;
	if (code == DDPS_SD_TERMINATE) /* [5043-5.2.3-4] */
		return len == 0;
	return !needs_word(code) || len >= DDPS_SD_WORD_LEN;
}

int ddps_sd_decode(struct ddps_sd_msg *m, uint32_t ppid, const uint8_t *buf, size_t len)
{
	struct ddps_rbuf r = ddps_rbuf_init(buf, len);
	struct ddps_sd_msg out = { .segment = ppid == DDPS_SD_PPID_SEGMENT };

	if (!out.segment && ppid != DDPS_SD_PPID_CONTROL)
		return DDPS_E_PROTOCOL;
	out.ssn = ddps_rbuf_u16(&r);
	if (!out.segment)
		out.code = ddps_rbuf_u16(&r);
	if (r.failed)
		return DDPS_E_TRUNCATED;
	out.len = ddps_rbuf_left(&r);
	out.data = ddps_rbuf_take(&r, out.len);
	if (!out.segment)
		out.bad = out.code < DDPS_SD_INITIATE || out.code > DDPS_SD_ENH_REJECT ||
			  !ddps_sd_pd_ok(out.code, out.len);
	*m = out;
	return 0;
}

void ddps_sd_encode_control(uint8_t out[DDPS_SD_CONTROL_LEN], uint16_t ssn, uint16_t code)
{
	struct ddps_wbuf w = ddps_wbuf_init(out, DDPS_SD_CONTROL_LEN);

	ddps_wbuf_u16(&w, ssn);
	ddps_wbuf_u16(&w, code);
}

bool ddps_sd_is_initiate(const struct ddps_sd_msg *m)
{
	return !m->segment && !m->bad &&
	       (m->code == DDPS_SD_INITIATE || m->code == DDPS_SD_ENH_INITIATE);
}

bool ddps_sd_ppid_swapped(uint32_t ppid)
{
	return ppid == DDPS_SD_PPID_SEGMENT << 24 || ppid == DDPS_SD_PPID_CONTROL << 24;
}

const char *ddps_sd_code_name(uint16_t code)
{
	static const char *const names[] = {
		[DDPS_SD_INITIATE] = "Initiate",
		[DDPS_SD_ACCEPT] = "Accept",
		[DDPS_SD_REJECT] = "Reject",
		[DDPS_SD_TERMINATE] = "Terminate",
		[DDPS_SD_ENH_INITIATE] = "Enhanced Initiate",
		[DDPS_SD_ENH_ACCEPT] = "Enhanced Accept",
		[DDPS_SD_ENH_REJECT] = "Enhanced Reject",
	};

	if (code < DDPS_SD_INITIATE || code > DDPS_SD_ENH_REJECT)
		return "unknown function code";
	return names[code];
}

size_t ddps_sd_segment_in(size_t user_data)
{
	size_t room = DDPS_SD_SSN_LEN + CONTROL_CHUNK_ROOM;
	size_t n = user_data & ~(size_t)3;

	return n > room ? n - room : 0;
}

size_t ddps_sd_mulpdu(size_t max_user_data, size_t limit)
{
	size_t n = ddps_sd_segment_in(max_user_data);

	if (n < DDPS_SD_MULPDU_MIN)
		n = DDPS_SD_MULPDU_MIN;
	return limit && limit < n ? limit : n;
}
