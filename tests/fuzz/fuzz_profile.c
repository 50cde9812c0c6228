/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of devices: what is taken is sound, what is not is reported with its place in the text. */
#include "fuzz.h"
#include "edge/profile/vp.h"

static void check_profile_fuzz_sound(const struct vp_device *d)
{
	FUZZ_CHECK(*d->name && memchr(d->name, 0, sizeof d->name) && !strchr(d->name, '/'));
	FUZZ_CHECK(memchr(d->firmware, 0, sizeof d->firmware));
	FUZZ_CHECK(d->ports && d->ports <= VP_PORTS && d->limit[VP_MAX_SGE] <= 16);
	for (unsigned i = 0; i < d->ports; i++) {
		FUZZ_CHECK(memchr(d->port[i].interface, 0, VP_IFNAME));
		FUZZ_CHECK(d->port[i].mtu >= 256 && d->port[i].mtu <= 4096);
		FUZZ_CHECK(d->port[i].width && d->port[i].speed);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t most[VP_LIMITS] = { [VP_MAX_SGE] = 16 };
	struct vp_profile *p = calloc(1, sizeof *p);
	struct vf_error e = { 0 };

	FUZZ_CHECK(p);
	if (vp_parse(p, most, (const char *)data, size, &e))
		FUZZ_CHECK(e.line && e.column && *e.why && memchr(e.why, 0, sizeof e.why));
	else
		for (unsigned i = 0; i < p->n; i++)
			check_profile_fuzz_sound(&p->device[i]);
	free(p);
	return 0;
}
