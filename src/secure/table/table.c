/* SPDX-License-Identifier: BSD-2-Clause */
/* What libddpsess-tls.so offers. */
#include "secure/aead/aead_lib.h"
#include "secure/plugin.h"
#include <gnutls/gnutls.h>

DDPS_API extern const struct ddps_tls_plugin ddps_tls_plugin;
const struct ddps_tls_plugin ddps_tls_plugin = {
	.abi = DDPS_TLS_ABI,
	.version = GNUTLS_VERSION,

	.creds_open = ddps_creds_open,
	.creds_reload = ddps_creds_reload,
	.creds_share = ddps_creds_share,
	.creds_close = ddps_creds_close,
	.creds_use = ddps_creds_use,
	.creds_release = ddps_creds_release,
	.creds_judge = ddps_creds_judge,

	.hs_new = ddps_hs_new,
	.hs_free = ddps_hs_free,
	.hs_step = ddps_hs_step,
	.hs_output = ddps_hs_output,
	.hs_sent = ddps_hs_sent,
	.hs_why = ddps_hs_why,
	.hs_take = ddps_hs_take,
	.aead = ddps_aead_best,

	.check = ddps_creds_check,
	.make = ddps_creds_make,
};
