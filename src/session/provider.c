/* SPDX-License-Identifier: BSD-2-Clause */
/* From a URI's scheme to its transport: the only place above the LLPs that names one. */
#include "session/provider.h"
#include <string.h>

static const struct ddps_llp_provider *const providers[] = {
	&ddps_mpa_provider,  &ddps_tls_provider,   &ddps_shm_provider,
	&ddps_sctp_provider, &ddps_sctps_provider,
};

#define NPROVIDERS (sizeof providers / sizeof providers[0])

const struct ddps_llp_provider *ddps_provider_find(const char *scheme)
{
	for (size_t i = 0; i < NPROVIDERS; i++)
		if (!strcmp(providers[i]->scheme, scheme))
			return providers[i];
	return NULL;
}

enum ddps_left ddps_providers_wind_up(struct ddps_env *env, bool all)
{
	enum ddps_left most = DDPS_LEFT_NOTHING, left;

	for (size_t i = 0; i < NPROVIDERS; i++) {
		left = providers[i]->wind_up ? providers[i]->wind_up(env, all) : DDPS_LEFT_NOTHING;
		if (left > most)
			most = left;
	}
	return most;
}

void ddps_providers_fini(struct ddps_env *env)
{
	for (size_t i = 0; i < NPROVIDERS; i++)
		if (providers[i]->fini)
			providers[i]->fini(env);
}
