/* SPDX-License-Identifier: BSD-2-Clause */
/* The other wires: session messages on SCTP, MPA frames, DDP and RDMAP headers. */
#include "ddp/ddp_wire.c"
#include "mpa_tcp/mpa_wire.c"
#include "rdmap/rdmap_wire.c"
#include "sctp_ddp/sd_wire.c"
#include "proof.h"

static void a_message(uint32_t ppid, size_t len)
{
	struct ddps_sd_msg m;

	if (ddps_sd_decode(&m, ppid, make_unknown_octets(len), len))
		return;
	read_octets_of(m.data, m.len);
	ddps_sd_is_initiate(&m);
	ddps_sd_code_name(m.code);
	/*@ assert m.segment || m.len == len - DDPS_SD_CONTROL_LEN; */
}

void session_messages(void)
{
	for (size_t len = 0; len <= MOST; len = longer(len)) {
		/*@ slevel merge; */
		a_message(DDPS_SD_PPID_SEGMENT, len);
		a_message(DDPS_SD_PPID_CONTROL, len);
		a_message(Frama_C_unsigned_int_interval(0, DDPS_SD_PPID_SEGMENT - 1), len);
		a_message(Frama_C_unsigned_int_interval(DDPS_SD_PPID_CONTROL + 1, 0xffffffff), len);
	}
}

static void a_made_frame(const uint8_t *pd, size_t len)
{
	uint8_t out[DDPS_MPA_FRAME_MAX];
	struct ddps_mpa_frame f = { .markers = either(),
				    .crc = either(),
				    .reject = either(),
				    .enhanced = either(),
				    .rev = (uint8_t)Frama_C_interval(0, 255),
				    .pd = pd,
				    .pd_len = len };
	size_t n = ddps_mpa_frame_encode(out, DDPS_MPA_REQUEST, &f),
	       m = ddps_mpa_frame_encode(out, DDPS_MPA_REPLY, &f);

	/*@ assert n == 0 || n == DDPS_MPA_HDR_LEN + len; */
	/*@ assert m == 0 || m == DDPS_MPA_HDR_LEN + len; */
}

void mpa_encoder(void)
{
	for (size_t len = 0; len <= DDPS_MPA_PD_MAX + 2; len = longer(len)) {
		/*@ slevel merge; */
		a_made_frame(make_unknown_octets(len), len);
	}
}

/* A frame of which @len octets have come: all of its private data, or as much as is there. */
static void a_read_frame(size_t len, enum ddps_mpa_kind kind)
{
	const uint8_t *p = make_unknown_octets(len);
	struct ddps_mpa_frame f;
	const char *why = "";
	size_t need = 0;
	int got = ddps_mpa_frame_decode(&f, kind, p, len, &need, &why);

	/*@ assert got <= 1 && need <= DDPS_MPA_FRAME_MAX; */
	if (got == 1) {
		/*@ assert f.pd_len <= DDPS_MPA_PD_MAX && f.pd == p + DDPS_MPA_HDR_LEN; */
		read_octets_of(f.pd, f.pd_len);
		ddps_mpa_reply_fits(&f, either(), &why);
	}
}

void mpa_decoder(void)
{
	for (size_t len = 0; len <= DDPS_MPA_FRAME_MAX + 2; len += len < 30 || len > 529 ? 1 : 37) {
		/*@ slevel merge; */
		a_read_frame(len, DDPS_MPA_REQUEST);
		a_read_frame(len, DDPS_MPA_REPLY);
	}
}

static void a_segment(size_t len, uint8_t ctrl)
{
	uint8_t *p = make_unknown_octets(len), out[DDPS_DDP_UNTAGGED_LEN];
	struct ddps_ddp_hdr h;
	int n;

	if (len)
		*p = ctrl;
	n = ddps_ddp_decode(&h, p, len);
	if (n > 0) {
		size_t m = ddps_ddp_encode(&h, out);

		/*@ assert n <= len && m == n; */
	}
}

void ddp_headers(void)
{
	for (size_t len = 0; len <= 20; len++) {
		/*@ slevel merge; */
		for (unsigned ctrl = 0; ctrl < 256;
		     ctrl += ctrl % 64 == 3 ? 61 : 1) { /* DV, T and L */
			/*@ slevel merge; */
			a_segment(len, (uint8_t)ctrl);
		}
	}
}

/* @flags, as one of the two ways to write them has it; the DDP header behind is @tagged. */
static void a_terminate(size_t len, uint8_t flags, _Bool tagged)
{
	uint8_t *p = make_unknown_octets(len);
	struct ddps_term_msg t;

	if (len > 2)
		p[2] = flags;
	if (len > 6)
		p[6] = (uint8_t)(tagged ? Frama_C_interval(128, 255) : Frama_C_interval(0, 127));
	if (ddps_term_decode(&t, p, len))
		return;
	if (t.ddp)
		read_octets_of(t.ddp, t.ddp_len);
	if (t.rreq)
		read_octets_of(t.rreq, DDPS_RREQ_LEN);
}

void rdmap_terminates(void)
{
	for (size_t len = 0; len <= 56; len += len < 8 || len > 50 ? 1 : 14) {
		/*@ slevel merge; */
		for (unsigned bits = 0; bits < 64; bits++) {
			/*@ slevel merge; */
			a_terminate(len, (uint8_t)(bits % 8 << 5 | bits / 8), 0);
			a_terminate(len, (uint8_t)(bits % 8 << 5 | bits / 8), 1);
		}
	}
}

void rdmap_headers(void)
{
	uint8_t out[64];
	struct ddps_rreq q;
	struct ddps_areq a;
	struct ddps_aresp r;

	ddps_rreq_decode(&q, make_unknown_octets(DDPS_RREQ_LEN));
	ddps_rreq_encode(&q, out);
	ddps_areq_decode(&a, make_unknown_octets(DDPS_AREQ_LEN));
	ddps_areq_encode(&a, out);
	ddps_aresp_decode(&r, make_unknown_octets(DDPS_ARESP_LEN));
	ddps_aresp_encode(&r, out);
}
