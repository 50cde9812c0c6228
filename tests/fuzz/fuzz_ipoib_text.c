/* SPDX-License-Identifier: BSD-2-Clause */
/* The text forms of IPoIB: what one parser takes is printed, and parsed to the same again. */
#include "fuzz.h"
#include "ipoib_cm/wire/wire.h"
#include <ddpsess/ipoib_cm.h>

static void lladdr(const char *text)
{
	char out[DDPS_IPOIB_LLADDR_TEXT];
	struct ddps_ipoib_lladdr a = { 0 }, b = { 0 };

	if (ddps_ipoib_lladdr_parse(&a, text))
		return;
	FUZZ_CHECK(a.qpn <= DDPS_IPOIB_QPN_MAX && !(a.flags & 0x3f));
	ddps_ipoib_lladdr_print(out, &a);
	FUZZ_CHECK(strnlen(out, sizeof out) == sizeof out - 1);
	FUZZ_CHECK(!ddps_ipoib_lladdr_parse(&b, out));
	FUZZ_CHECK(!ddps_ipoib_lladdr_cmp(&a, &b) && a.flags == b.flags);
}

static void flags(const char *text)
{
	char out[DDPS_IPOIB_FLAGS_TEXT];
	uint8_t a = 0xff, b = 0xff;

	if (ddps_ipoib_flags_parse(&a, text)) {
		FUZZ_CHECK(a == 0xff);
		return;
	}
	ddps_ipoib_flags_print(out, a);
	FUZZ_CHECK(!ddps_ipoib_flags_parse(&b, out) && a == b);
}

static void gid(const char *text)
{
	char out[DDPS_IPOIB_GID_TEXT];
	uint8_t a[16], b[16];

	if (ddps_ipoib_gid_parse(a, text))
		return;
	ddps_ipoib_gid_print(out, a);
	FUZZ_CHECK(strnlen(out, sizeof out) < sizeof out);
	FUZZ_CHECK(!ddps_ipoib_gid_parse(b, out) && !memcmp(a, b, sizeof a));
}

static void service_id(const char *text)
{
	char out[DDPS_IPOIB_SERVICE_ID_TEXT];
	enum ddps_ipoib_sid_form form;
	uint64_t a = 0, b = 0;
	uint32_t qpn;

	if (ddps_ipoib_service_id_parse(&a, text))
		return;
	ddps_ipoib_service_id_print(out, a);
	FUZZ_CHECK(!ddps_ipoib_service_id_parse(&b, out) && a == b);
	if (!ddps_ipoib_service_id_split(a, &form, &qpn))
		FUZZ_CHECK(!ddps_ipoib_service_id(&b, form, qpn) && a == b);
}

static void priv(const char *text)
{
	char out[DDPS_IPOIB_PRIV_TEXT];
	struct ddps_ipoib_priv a = { 0 }, b = { 0 };

	if (ddps_ipoib_priv_parse(&a, text))
		return;
	ddps_ipoib_priv_print(out, &a);
	FUZZ_CHECK(!ddps_ipoib_priv_parse(&b, out) && a.qpn == b.qpn && a.rx_mtu == b.rx_mtu);
}

static void put_ipoib_text_fuzz_attr(const char *text)
{
	int a = ddps_cm_attr_parse(text);

	FUZZ_CHECK(a < 0 || !strcmp(ddps_cm_attr_name((uint16_t)a), text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(
		const char *) = { lladdr, flags, gid, service_id, priv, put_ipoib_text_fuzz_attr };
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	unsigned which = ddps_rbuf_u8(&in);
	char *text = fuzz_text(&in);

	parsers[which % (sizeof parsers / sizeof *parsers)](text);
	free(text);
	return 0;
}
