/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a peer is, kept as long as its texts are. */
#include "common/who.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* All texts as long as they can be, or as they mostly are. */
static struct ddps_peer_id make_peer_id(bool longest)
{
	struct ddps_peer_id id = { .struct_size = sizeof id,
				   .not_before = 1700000000,
				   .not_after = INT64_MAX,
				   .how = DDPS_PEER_X509,
				   .depth = 3,
				   .name = "dns:node-a.example",
				   .names = "dns:node-a.example\nip:192.0.2.1",
				   .issuer = "CN=cluster",
				   .serial = "4711",
				   .version = "TLS 1.3",
				   .suite = "AES-128-GCM",
				   .group = "X25519",
				   .alpn = "x-iwarp-mpa" };

	memset(id.fingerprint, 0xa5, sizeof id.fingerprint);
	if (!longest)
		return id;
	memset(id.name, 'n', sizeof id.name - 1);
	memset(id.names, 'm', sizeof id.names - 1);
	memset(id.issuer, 'i', sizeof id.issuer - 1);
	memset(id.serial, 's', sizeof id.serial - 1);
	memset(id.version, 'v', sizeof id.version - 1);
	memset(id.suite, 'u', sizeof id.suite - 1);
	memset(id.group, 'g', sizeof id.group - 1);
	memset(id.alpn, 'a', sizeof id.alpn - 1);
	return id;
}

static void check_same(const struct ddps_peer_id *a, const struct ddps_peer_id *b)
{
	cr_expect_eq(b->struct_size, sizeof *b);
	cr_expect_eq(a->not_before, b->not_before);
	cr_expect_eq(a->not_after, b->not_after);
	cr_expect_eq(a->how, b->how);
	cr_expect_eq(a->depth, b->depth);
	cr_expect_arr_eq(a->fingerprint, b->fingerprint, sizeof a->fingerprint);
	cr_expect_str_eq(a->name, b->name);
	cr_expect_str_eq(a->names, b->names);
	cr_expect_str_eq(a->issuer, b->issuer);
	cr_expect_str_eq(a->serial, b->serial);
	cr_expect_str_eq(a->version, b->version);
	cr_expect_str_eq(a->suite, b->suite);
	cr_expect_str_eq(a->group, b->group);
	cr_expect_str_eq(a->alpn, b->alpn);
}

Test(who, what_was_kept_comes_back)
{
	for (int longest = 0; longest < 2; longest++) {
		const struct ddps_peer_id id = make_peer_id(longest);
		struct ddps_who *who = ddps_who_keep(&id), *copy = ddps_who_copy(who);
		struct ddps_peer_id back;

		cr_assert(who && copy);
		cr_expect(longest || sizeof *who + who->len < 256,
			  "a name of few octets takes few");
		ddps_who_give(who, &back);
		check_same(&id, &back);
		cr_expect_str_eq(ddps_who_text(who, DDPS_WHO_SUITE), id.suite);
		free(who);
		ddps_who_give(copy, &back);
		check_same(&id, &back);
		free(copy);
	}
}

Test(who, nobody)
{
	const struct ddps_peer_id none = { .struct_size = sizeof none };
	struct ddps_peer_id back;

	cr_expect_null(ddps_who_copy(NULL));
	ddps_who_give(NULL, &back);
	check_same(&none, &back);
}
