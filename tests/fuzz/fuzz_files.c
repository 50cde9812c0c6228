/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that people write, one kind by the first octet: profiles of conform, scenarios of ipoib
 * sim, settings of the verbs, CM messages as JSON.
 */
#include "fuzz.h"
#include "conform/profile/conform_profile.h"
#include "ipoib/ipoib_sim.h"
#include "ipoib/show/madtext.h"
#include "verbs/vd_config.h"
#include <stdio.h>

#define NODES 4u

static void parse_profile_file(const char *path)
{
	struct cf_profile p;
	char why[256] = "";

	if (cf_profile_load(&p, path, why, sizeof why)) {
		FUZZ_CHECK(*why && strnlen(why, sizeof why) < sizeof why);
		return;
	}
	for (size_t i = 0; i < p.n; i++) {
		FUZZ_CHECK(*p.row[i].name && p.row[i].does && !strchr(p.row[i].name, ' '));
		FUZZ_CHECK(cf_profile_find(&p, p.row[i].name));
	}
	cf_profile_free(&p);
}

static void scenario(const char *path)
{
	struct sim s = { .n = NODES };
	char why[256] = "";

	if (sim_read(&s, path, why, sizeof why))
		FUZZ_CHECK(*why && strnlen(why, sizeof why) < sizeof why);
	for (size_t i = 0; i < s.nsteps; i++) {
		const struct sim_step *t = &s.step[i];

		FUZZ_CHECK(t->verb == SIM_LOSS ? t->a <= 100 : t->a < NODES && t->b < NODES);
		FUZZ_CHECK(t->verb != SIM_SEND ||
			   (t->a != t->b && t->len >= 28 && t->len <= 65000));
	}
	free(s.step);
}

static void settings(const char *path)
{
	static const char *const keys[] = { "DDPSESS_TRANSPORT", "DDPSESS_CRC", "DDPSESS_NO_RECV" };
	struct vd_settings *s = malloc(sizeof *s);

	FUZZ_CHECK(s);
	FUZZ_CHECK(!setenv("DDPSESS_CONF", path, 1));
	vd_settings_read(s);
	FUZZ_CHECK(s->len <= VD_SETTINGS_MAX);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *v = unsetenv(keys[i]) ? NULL : vd_settings_get(s, keys[i]);
		size_t n = v ? strlen(v) : 0;

		FUZZ_CHECK(!v || (v > s->text && v + n < s->text + s->len));
		FUZZ_CHECK(!v || !strchr(v, '\n'));
		FUZZ_CHECK(!n || (!strchr(" \t\r", v[0]) && !strchr(" \t\r", v[n - 1])));
	}
	free(s);
}

static void parse_mad_file(const char *path)
{
	struct ddps_cm_mad m, again;
	uint8_t octets[DDPS_CM_MAD_LEN];
	char why[256] = "", brief[100];
	json_t *j = json_load_file(path, 0, NULL), *out;

	memset(&m, 0, sizeof m);
	memset(&again, 0, sizeof again);
	if (j && madtext_from_json(&m, j, why, sizeof why)) {
		FUZZ_CHECK(*why && strnlen(why, sizeof why) < sizeof why);
	} else if (j) {
		madtext_brief(brief, sizeof brief, &m);
		out = json_object();
		madtext_to_json(out, &m);
		FUZZ_CHECK(!madtext_from_json(&again, out, why, sizeof why));
		FUZZ_CHECK(!memcmp(&m, &again, sizeof m));
		json_decref(out);
		(void)ddps_cm_mad_encode(octets, &m);
	}
	json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const kinds[])(const char *) = { parse_profile_file, scenario, settings,
						       parse_mad_file };

	if (size)
		kinds[data[0] % 4](fuzz_file(data + 1, size - 1));
	return 0;
}
