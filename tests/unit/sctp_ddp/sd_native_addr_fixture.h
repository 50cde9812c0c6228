/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SD_NATIVE_ADDR_FIXTURE_H
#define SD_NATIVE_ADDR_FIXTURE_H
/* Addresses for tests of the native backend's sockets, and how many descriptors are open. */
#include "sd_native_fixture.h"
#include <dirent.h>

#define OFF  DDPS_URI_ENCAP_OFF
#define PORT 7174

static inline struct ddps_sctp_addr addr(const char *text)
{
	struct ddps_sctp_addr a = { .family = strchr(text, ':') ? 6 : 4 };

	cr_assert_eq(inet_pton(a.family == 6 ? AF_INET6 : AF_INET, text, a.ip), 1);
	return a;
}

static inline void put_sd_native_addr(struct ddps_uri_addrs *list, const char *text, uint16_t port)
{
	struct ddps_sctp_addr a = addr(text);

	ddps_sn_sockaddr(&a, port, a.family == 6 ? AF_INET6 : AF_INET, &list->at[list->n++]);
}

static inline unsigned count_sd_native_addr_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static inline void to_these(struct side *s, const char *a, const char *b, int encap)
{
	struct ddps_uri uri = { .encap = encap };

	put_sd_native_addr(&uri.hosts, a, PORT);
	if (b)
		put_sd_native_addr(&uri.hosts, b, PORT);
	*s = (struct side){ .b = B };
	cr_assert_eq(B->connect(&cn.env, &cn.ctx, &uri, (struct sockaddr *)&uri.hosts.at[0],
				ddps_addr_len(&uri.hosts.at[0]),
				&(struct ddps_llp_param){ .connect_ms = 60000 }, &fx_up, s, &s->a),
		     0);
}

#endif
