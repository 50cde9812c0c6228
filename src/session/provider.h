/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_PROVIDER_H
#define DDPS_PROVIDER_H
/* The transports: provider.c names them, nobody else does. */
#include "common/llp.h"

/* By a URI's scheme; NULL: there is none. */
const struct ddps_llp_provider *ddps_provider_find(const char *scheme);
enum ddps_left ddps_providers_wind_up(struct ddps_env *env, bool all);
void ddps_providers_fini(struct ddps_env *env);

#endif
