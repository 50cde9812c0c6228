/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of sessctl's services, and what becomes of the names and texts in them. */
#include "fuzz.h"
#include "xfer/proto.h"
#include "cli/safe.h"
#include "cli/text.h"

static void check_text(const char *text)
{
	char clean[64];
	const char *fault = safe_name_fault(text);

	FUZZ_CHECK(*text && strlen(text) <= MSG_TEXT_MAX);
	if (!fault) {
		FUZZ_CHECK(text[0] != '/' && strlen(text) <= SAFE_NAME_MAX);
		FUZZ_CHECK(strcmp(text, "..") && strncmp(text, "../", 3) && !strstr(text, "/../"));
		FUZZ_CHECK(text_is_clean(text, strlen(text)));
	}
	text_clean(clean, sizeof clean, text, strlen(text));
	FUZZ_CHECK(strnlen(clean, sizeof clean) < sizeof clean);
	FUZZ_CHECK(text_is_clean(clean, strlen(clean)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *exact = fuzz_exact(data, size), out[MSG_MAX], again_out[MSG_MAX];
	struct msg m, again;
	const char *why = NULL;
	size_t n;

	memset(&m, 0, sizeof m);
	memset(&again, 0, sizeof again);
	if (msg_decode(&m, exact, size, &why)) {
		FUZZ_CHECK(why && *why);
		free(exact);
		return 0;
	}
	free(exact);
	FUZZ_CHECK(m.type > 0 && m.type < MSG_NTYPES && m.nslots <= SLOTS_MAX && size <= MSG_MAX);
	n = msg_encode(&m, out, sizeof out);
	FUZZ_CHECK(n && !msg_encode(&m, out, n - 1));
	FUZZ_CHECK(msg_encode(&m, out, sizeof out) == n && !msg_decode(&again, out, n, &why));
	FUZZ_CHECK(msg_encode(&again, again_out, sizeof again_out) == n);
	FUZZ_CHECK(!memcmp(out, again_out, n));
	if (*m.text)
		check_text(m.text);
	return 0;
}
