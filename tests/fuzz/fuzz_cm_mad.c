/* SPDX-License-Identifier: BSD-2-Clause */
/* CM MADs: what is decoded is encoded to the same message, by struct and by the fields' names. */
#include "fuzz.h"
#include "ipoib/show/madtext.h"
#include "ipoib_cm/wire/wire.h"
#include "mutate.h"

/* Every field can be read, is set to what it is, and lies within the MAD. */
static void walk_cm_fields(struct ddps_cm_mad *m, const struct ddps_cm_field *f)
{
	struct ddps_cm_mad was = *m;

	for (; f && f->name; f++) {
		uint8_t *octets = ddps_cm_field_octets(m, f);

		FUZZ_CHECK(f->bit + f->width <= 8 * DDPS_CM_MAD_LEN);
		if (!*f->name) /* a piece of the one before it */
			continue;
		if (octets) {
			FUZZ_CHECK(octets >= (uint8_t *)m &&
				   octets + f->width / 8 <= (uint8_t *)(m + 1));
			continue;
		}
		FUZZ_CHECK(!ddps_cm_field_set(m, f, ddps_cm_field_get(m, f)));
		FUZZ_CHECK(!memcmp(m, &was, sizeof was));
	}
}

/* The same by way of sessctl's JSON. */
static void by_json(const struct ddps_cm_mad *m)
{
	struct ddps_cm_mad again;
	json_t *j = json_object();
	char why[200];

	memset(&again, 0, sizeof again);
	madtext_to_json(j, m);
	FUZZ_CHECK(!madtext_from_json(&again, j, why, sizeof why));
	FUZZ_CHECK(!memcmp(m, &again, sizeof again));
	json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[DDPS_CM_MAD_LEN], again[DDPS_CM_MAD_LEN], *exact;
	struct ddps_cm_mad m, n;
	size_t len = 0;
	int err;

	/* compared as memory, so padding is to be the same */
	memset(&m, 0, sizeof m);
	memset(&n, 0, sizeof n);
	exact = fuzz_exact(data, size);
	err = ddps_cm_mad_decode(&m, exact, size);
	free(exact);
	FUZZ_CHECK((size < DDPS_CM_MAD_LEN) == (err == DDPS_E_TRUNCATED));
	FUZZ_CHECK((size > DDPS_CM_MAD_LEN) == (err == DDPS_E_TOO_LONG));
	if (err)
		return 0;
	FUZZ_CHECK(ddps_cm_private_data(&m, &len) && len >= 92);
	FUZZ_CHECK(ddps_cm_attr_parse(ddps_cm_attr_name(m.hdr.attr_id)) == m.hdr.attr_id);
	FUZZ_CHECK(!ddps_cm_mad_encode(out, &m));
	FUZZ_CHECK(!ddps_cm_mad_decode(&n, out, sizeof out));
	FUZZ_CHECK(!memcmp(&m, &n, sizeof m));
	FUZZ_CHECK(!ddps_cm_mad_encode(again, &n));
	FUZZ_CHECK(!memcmp(out, again, sizeof out));
	by_json(&m);
	walk_cm_fields(&m, ddps_cm_hdr_fields());
	walk_cm_fields(&m, ddps_cm_fields(m.hdr.attr_id));
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_dice d;

	if (!fuzz_mutate_begin(&d, seed) || max < DDPS_CM_MAD_LEN)
		return LLVMFuzzerMutate(data, size, max);
	if (size < DDPS_CM_MAD_LEN)
		memset(data + size, 0, DDPS_CM_MAD_LEN - size);
	fuzz_mutate_cm(data, &d);
	return DDPS_CM_MAD_LEN;
}
