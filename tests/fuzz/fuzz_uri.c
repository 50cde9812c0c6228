/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport URIs: what is parsed is within its bounds, and an address printed is parsed the same. */
#include "fuzz.h"
#include "common/uri.h"
#include <ddpsess/err.h>
#include <stdio.h>

static void check_parsed_uri(const struct ddps_uri *u)
{
	static const char *const schemes[] = { "tcp", "tls", "sctp", "sctps", "shm" };
	size_t i = 0;

	while (i < sizeof schemes / sizeof schemes[0] && strcmp(u->scheme, schemes[i]))
		i++;
	FUZZ_CHECK(i < sizeof schemes / sizeof schemes[0]);
	FUZZ_CHECK(strnlen(u->host, sizeof u->host) < sizeof u->host);
	FUZZ_CHECK(strnlen(u->backend, sizeof u->backend) < sizeof u->backend);
	FUZZ_CHECK(u->encap >= DDPS_URI_ENCAP_OFF && u->encap <= 65535);
}

/* An address of the machine's own interfaces is another one elsewhere. */
static void numeric(const struct ddps_uri *u)
{
	struct sockaddr_storage ss = { 0 }, again_ss = { 0 };
	socklen_t len = 0, again_len = 0;
	char text[128], uri[160], why[256];
	struct ddps_uri again;

	if (!u->numeric || strchr(u->host, '%') || ddps_uri_sockaddr(u, &ss, &len))
		return;
	FUZZ_CHECK(len <= sizeof ss);
	ddps_addr_text((struct sockaddr *)&ss, text, sizeof text);
	snprintf(uri, sizeof uri, "%s://%s", u->scheme, text);
	FUZZ_CHECK(!ddps_uri_parse(&again, uri, why, sizeof why));
	FUZZ_CHECK(again.numeric && again.port == u->port);
	FUZZ_CHECK(!ddps_uri_sockaddr(&again, &again_ss, &again_len));
	FUZZ_CHECK(len == again_len && !memcmp(&ss, &again_ss, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ddps_rbuf in = ddps_rbuf_init(data, size);
	char *text = fuzz_text(&in), why[256];
	struct ddps_uri u, again;
	int err;

	memset(&u, 0, sizeof u);
	memset(&again, 0, sizeof again);
	memset(why, 0, sizeof why);
	err = ddps_uri_parse(&u, text, why, sizeof why);
	FUZZ_CHECK(!err ||
		   (err == DDPS_E_ADDRESS && *why && strnlen(why, sizeof why) < sizeof why));
	FUZZ_CHECK(ddps_uri_parse(&again, text, why, 16) == err);
	if (!err) {
		check_parsed_uri(&u);
		numeric(&u);
	}
	free(text);
	return 0;
}
