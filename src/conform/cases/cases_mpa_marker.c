/* SPDX-License-Identifier: BSD-2-Clause */
/* RFC 5044 4.2 to 4.5: markers both ways, and how long the target makes its ULPDUs. */
#include "conform/peer/inside.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#define SINK 0x6d61726bu
#define MANY 130 /* questions of 52 octets and answers of 20: some markers, at all places */

/* A Write of nothing: an FPDU of 20 octets that is not answered. */
CF_CALL(put_empty_write, cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, NULL, 0));

/* ---- markers that the target sends ---- */

static void ask_many(struct cf *cf, bool markers, bool target_markers)
{
	const struct cf_opts o = { .markers = markers, .target_markers = target_markers };

	cf_session(cf, &o);
	if (target_markers && !(cf->mpa.flags & CF_MPA_M))
		cf_skip(cf, "the target wants no markers");
	for (unsigned i = 0; i < MANY; i++)
		cf_ping(cf);
}

CF_CALL(check_markers_sent, ask_many(cf, true, false));
CF_CALL(check_markers_none, ask_many(cf, false, false));
CF_CALL(check_markers_received, ask_many(cf, false, true));
CF_CALL(check_markers_both_ways, ask_many(cf, true, true));

/* Several questions at a time: the target's FPDUs lie packed. */
static void sent_packed(struct cf *cf)
{
	const struct cf_opts o = { .markers = true };
	uint8_t b[1000];

	cf_session(cf, &o);
	for (unsigned k = 0; k < 20; k++) {
		size_t n = 0;

		for (unsigned i = 0; i < 8; i++) {
			cf_question(cf);
			n += cf_fpdu_build(cf, NULL, b + n);
		}
		cf_tcp_write(cf, b, n);
		for (unsigned i = 0; i < 8; i++)
			cf_answer(cf);
	}
}

/* Long FPDUs with many markers each. */
static void sent_long(struct cf *cf)
{
	const struct cf_opts o = { .markers = true };
	size_t len, at = 0, size = 200000;
	struct cf_mr mr;

	cf_session(cf, &o);
	mr = cf_app_mr(cf, size, DDPS_REMOTE_READ);
	cf_read_req(cf, cf_msn(cf, 1), SINK, 0, (uint32_t)size, mr.stag, mr.to);
	cf_send(cf);
	while (at < size) {
		const uint8_t *p;

		cf_recv(cf);
		p = cf_in_payload(cf, &len);
		CF_CHECK(cf, cf_in_to(cf) == at && len <= size - at && !memcmp(p, mr.mem + at, len),
			 "wrong %zu octets at %zu", len, at);
		at += len;
	}
	cf_ping(cf);
}

/* ---- markers that it receives ---- */

static void want_markers(struct cf *cf)
{
	const struct cf_opts o = { .target_markers = true };

	cf_session(cf, &o);
	if (!(cf->mpa.flags & CF_MPA_M))
		cf_skip(cf, "the target wants no markers");
}

/* Move the stream on by @writes FPDUs of 20 octets and @questions of 52. */
static void advance_stream(struct cf *cf, unsigned writes, unsigned questions)
{
	while (writes--) {
		put_empty_write(cf);
		cf_send(cf);
	}
	while (questions--)
		cf_ping(cf);
}

/* Where the next marker comes to lie in an FPDU of 20 octets that is built after this. */
enum place { LEADING, INSIDE, TRAILING };

static void advance_to_marker(struct cf *cf, enum place place)
{
	static const struct {
		uint8_t writes, questions;
		uint16_t offset;
	} way[] = {
		[LEADING] = { 15, 4, 512 }, /* 4 + 15 * 20 + 4 * 52 */
		[INSIDE] = { 20, 2, 508 },
		[TRAILING] = { 22, 1, 496 },
	};

	advance_stream(cf, way[place].writes, way[place].questions);
	CF_CHECK(cf, cf->conn->tx_off == way[place].offset, "case: stream offset %llu",
		 (unsigned long long)cf->conn->tx_off);
}

static void fault_at(struct cf *cf, enum place place, const struct cf_fault *w, uint16_t code)
{
	want_markers(cf);
	advance_to_marker(cf, place);
	put_empty_write(cf);
	cf_fpdu_write(cf, w);
	cf_expect_term(cf, code, CF_BARE);
}

static void pointer_leading(struct cf *cf)
{
	const struct cf_fault w = { .marker_xor = 4 };

	fault_at(cf, LEADING, &w, 0x2003);
}

static void pointer_inside(struct cf *cf)
{
	const struct cf_fault w = { .marker_xor = 4 };

	fault_at(cf, INSIDE, &w, 0x2003);
}

static void pointer_trailing(struct cf *cf)
{
	const struct cf_fault w = { .marker_xor = 0x8000 };

	fault_at(cf, TRAILING, &w, 0x2003);
}

static void crc_and_pointer(struct cf *cf)
{
	const struct cf_fault w = { .marker_xor = 4, .crc_xor = 1 };

	fault_at(cf, INSIDE, &w, 0x2002);
}

static void leading_uncovered(struct cf *cf)
{
	const struct cf_fault w = { .leading_uncovered = true };

	fault_at(cf, LEADING, &w, 0x2002);
}

static void trailing_uncovered(struct cf *cf)
{
	const struct cf_fault w = { .trailing_uncovered = true };

	fault_at(cf, TRAILING, &w, 0x2002);
}

/* Reserved bits and the pointer's low two are set in every marker. */
static void check_marker_reserved(struct cf *cf)
{
	const struct cf_fault w = { .marker_xor = 0xffff0003 };

	want_markers(cf);
	for (unsigned i = 0; i < MANY; i++) {
		cf_question(cf);
		cf_fpdu_write(cf, &w);
		cf_answer(cf);
	}
}

static void check_marker_split(struct cf *cf)
{
	uint8_t b[CF_MAX];

	want_markers(cf);
	for (unsigned k = 0; k < 22; k++) {
		size_t n;

		cf_question(cf);
		n = cf_fpdu_build(cf, NULL, b);
		for (size_t i = 0; i < n; i++)
			cf_tcp_write(cf, b + i, 1);
		cf_answer(cf);
	}
}

static void stripped(struct cf *cf)
{
	static const uint32_t sizes[] = { 1, 490, 513, 3000, 64700, 7 };
	uint8_t data[64700];
	struct cf_mr mr;

	want_markers(cf);
	mr = cf_app_mr(cf, sizeof data, DDPS_REMOTE_WRITE | DDPS_LOCAL_WRITE);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(mr.mem, 0, sizeof data);
		cf_fill(data, sizes[i], i);
		cf_tagged(cf, CF_TAGGED_L, CF_WRITE, mr.stag, mr.to, data, sizes[i]);
		cf_send(cf);
		cf_ping(cf);
		CF_CHECK(cf, !memcmp(mr.mem, data, sizes[i]), "%u octets came changed", sizes[i]);
	}
}

static void longest(struct cf *cf)
{
	static const uint8_t zero[64768];

	want_markers(cf);
	cf_tagged(cf, CF_TAGGED_L, CF_WRITE, 1, 0, zero, 64768 - 14);
	cf_send(cf);
	cf_expect_term(cf, 0x1100, CF_DDP);
}

/* A peer may send the marker that is due before it knows what follows, and then nothing. */
static void early_marker(struct cf *cf)
{
	want_markers(cf);
	advance_to_marker(cf, LEADING);
	cf_tcp_write(cf, "\0\0\0\0", 4);
	cf_tcp_fin(cf);
	cf_app_event(cf, DDPS_EV_PEER_CLOSED);
}

/* ---- MULPDU ---- */

/* The peer's socket says what a segment may hold; @want is by the formula of 4.5. */
static size_t formula(size_t emss, bool markers)
{
	size_t m = emss - (6 + emss % 4) - (markers ? 4 * ((emss + 511) / 512) : 0);

	return emss < 140 ? 128 : m;
}

static void small_segments(struct cf *cf, int mss)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd;

	if (cf->run->shared)
		cf_skip(cf, "shared memory has no segments");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CF_CHECK(cf, fd >= 0, "socket");
	cf->res->listen_fd = fd;
	CF_CHECK(cf, !setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof mss), "TCP_MAXSEG");
	CF_CHECK(cf, !bind(fd, (struct sockaddr *)&a, sizeof a) && !listen(fd, 4), "listening");
}

static void check_mulpdu(struct cf *cf, int mss, bool markers)
{
	const struct cf_opts o = { .markers = markers };
	size_t want, left = 12000;
	socklen_t len = sizeof mss;
	struct cf_mr mr;

	small_segments(cf, mss);
	cf_session(cf, &o);
	CF_CHECK(cf, !getsockopt(cf->conn->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len), "TCP_MAXSEG");
	want = formula((size_t)mss, markers);
	mr = cf_app_mr(cf, left, 0);
	cf_app_post(cf, DDPS_OP_WRITE, 0, &mr, (uint32_t)left, 1, 0);
	while (left) {
		size_t n;

		cf_recv(cf);
		cf_in_payload(cf, &n);
		CF_CHECK(cf, n <= left, "%zu octets too many", n - left);
		left -= n;
		CF_CHECK(cf, !left || cf->in.len == want,
			 "a ULPDU of %zu octets, EMSS is %d: expected %zu", cf->in.len, mss, want);
	}
}

CF_CALL(mulpdu_plain, check_mulpdu(cf, 1460, false));
CF_CALL(mulpdu_odd, check_mulpdu(cf, 1459, false));
CF_CALL(mulpdu_markers, check_mulpdu(cf, 1460, true));
CF_CALL(mulpdu_floor, check_mulpdu(cf, 110, false));

static void mulpdu_ceiling(struct cf *cf)
{
	size_t len, left = 300000;
	struct cf_mr mr;

	cf_session(cf, NULL);
	cf_ping(cf);
	mr = cf_app_mr(cf, left, 0);
	cf_app_post(cf, DDPS_OP_WRITE, 0, &mr, (uint32_t)left, 1, 0);
	for (; left; left -= len) {
		cf_recv(cf);
		cf_in_payload(cf, &len);
		CF_CHECK(cf, cf->in.len <= 64768, "a ULPDU of %zu octets", cf->in.len);
		CF_CHECK(cf, len && len <= left, "%zu octets when %zu are left", len, left);
	}
}

#define SENT                                                                                       \
	"5044-4.2-1 5044-4.2-2 5044-4.2-4 5044-4.3-1 5044-4.3-2 5044-4.3-3 5044-4.3-5 5044-4.3-7 " \
	"5044-4.3-8 5044-4.3-9 5044-4.3-10 5044-4.3-d1 5044-4.4-14 5044-4.4-15 5044-4.4-16 "       \
	"5044-7.1.1-8"

const struct cf_case cf_cases_mpa_marker[] = {
	{ "mpa-marker-tx", SENT " 5044-7.1.1-5 5044-7.1.2-d1", "M in the Request: markers, rightly",
	  CF_TCP, CF_RESPONDER, false, check_markers_sent },
	{ "mpa-marker-tx-packed", SENT " 5044-7.1.1-5", "markers in FPDUs that lie packed", CF_TCP,
	  CF_RESPONDER, false, sent_packed },
	{ "mpa-marker-tx-long", SENT " 5044-7.1.1-5", "many markers in one FPDU", CF_TCP,
	  CF_RESPONDER, true, sent_long },
	{ "mpa-marker-none", "5044-7.1.1-7 5044-1.2-d1 5044-4.3-d2", "M = 0: no markers", CF_TCP,
	  CF_RESPONDER, false, check_markers_none },
	{ "mpa-marker-rx", "5044-4.3-4 5044-4.3-5 5044-4.3-d1 5044-4.3-12 5044-5.2-1 5044-6-2",
	  "the target asked for markers, and gets them", CF_TCP, CF_RESPONDER, false,
	  check_markers_received },
	{ "mpa-marker-both", SENT " 5044-7.1.1-5 5044-4.3-12", "markers both ways", CF_TCP,
	  CF_RESPONDER, false, check_markers_both_ways },
	{ "mpa-marker-rx-reserved", "5044-4.2-3 5044-4.2-5 5044-4.3-6",
	  "reserved bits and low pointer bits are ignored", CF_TCP, CF_RESPONDER, false,
	  check_marker_reserved },
	{ "mpa-marker-rx-split", "5044-5.1-5 5044-6-5 5044-A.4-1", "markers in single octets",
	  CF_TCP, CF_RESPONDER, false, check_marker_split },
	{ "mpa-marker-rx-stripped", "5044-4.3-11 5044-4.3-12 5044-3-8",
	  "no marker is left in the data", CF_TCP, CF_RESPONDER, true, stripped },
	{ "mpa-marker-rx-longest", "5044-3-8 5044-4.3-12",
	  "the longest ULPDU, with 127 markers in it", CF_TCP, CF_RESPONDER, false, longest },
	{ "mpa-marker-rx-pointer-leading", "5044-8-1 5044-8-3 5044-8-9",
	  "a marker between FPDUs that is not zero: 2/0/03", CF_TCP, CF_RESPONDER, false,
	  pointer_leading },
	{ "mpa-marker-rx-pointer-inside", "5044-8-1 5044-8-3 5044-8-9",
	  "a pointer that misses the FPDU's start: 2/0/03", CF_TCP, CF_RESPONDER, false,
	  pointer_inside },
	{ "mpa-marker-rx-pointer-trailing", "5044-8-1 5044-8-3 5044-8-9",
	  "the same between pad and CRC", CF_TCP, CF_RESPONDER, false, pointer_trailing },
	{ "mpa-marker-rx-crc-pointer", "5044-4.4-18 5044-8-3",
	  "CRC and pointer wrong: the CRC counts, 2/0/02", CF_TCP, CF_RESPONDER, false,
	  crc_and_pointer },
	{ "mpa-marker-rx-crc-leading", "5044-4.3-5 5044-4.4-16 5044-4.3-d1",
	  "a CRC without the leading marker is wrong", CF_TCP, CF_RESPONDER, false,
	  leading_uncovered },
	{ "mpa-marker-rx-crc-trailing", "5044-4.4-15 5044-4.3-d1",
	  "a CRC without the marker behind the pad is wrong", CF_TCP, CF_RESPONDER, false,
	  trailing_uncovered },
	{ "mpa-marker-rx-early", "5044-7.2-1", "a marker and then a FIN is an orderly end", CF_TCP,
	  CF_RESPONDER, true, early_marker },
	{ "mpa-i-marker-tx", SENT " 5044-7.1.1-6 5044-7.1.2-d1", "M in the Reply: markers, rightly",
	  CF_TCP, CF_INITIATOR, false, check_markers_sent },
	{ "mpa-i-marker-tx-long", SENT " 5044-7.1.1-6", "many markers in one FPDU", CF_TCP,
	  CF_INITIATOR, true, sent_long },
	{ "mpa-i-marker-none", "5044-7.1.1-7 5044-1.2-d1 5044-4.3-d2", "M = 0: no markers", CF_TCP,
	  CF_INITIATOR, false, check_markers_none },
	{ "mpa-i-marker-rx", "5044-4.3-4 5044-4.3-5 5044-4.3-12 5044-6-2",
	  "the target asked for markers, and gets them", CF_TCP, CF_INITIATOR, false,
	  check_markers_received },
	{ "mpa-mulpdu",
	  "5044-3-2 5044-3-3 5044-3-4 5044-4.5-2 5044-4.5-5 5044-5.1-1 5044-5.1-d1 5044-3-1",
	  "ULPDUs as long as a TCP segment lets them be", CF_TCP, CF_INITIATOR, true,
	  mulpdu_plain },
	{ "mpa-mulpdu-odd", "5044-4.5-2 5044-4.5-5 5044-5.1-1",
	  "the same where a segment is no multiple of 4", CF_TCP, CF_INITIATOR, true, mulpdu_odd },
	{ "mpa-mulpdu-markers", "5044-4.5-1 5044-3-2 5044-5.1-1", "the same with markers", CF_TCP,
	  CF_INITIATOR, true, mulpdu_markers },
	{ "mpa-mulpdu-floor", "5044-4.5-6 5044-3-4", "never less than 128 octets", CF_TCP,
	  CF_INITIATOR, true, mulpdu_floor },
	{ "mpa-mulpdu-ceiling", "5044-3-4 5044-3-5", "never more than 64768 octets", CF_TCP,
	  CF_RESPONDER, true, mulpdu_ceiling },
	{ 0 },
};
