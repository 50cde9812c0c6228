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
	.creds_may = ddps_creds_may,

	.tls = { .make = ddps_hs_new,
		 .free = ddps_hs_free,
		 .step = ddps_hs_step,
		 .output = ddps_hs_output,
		 .sent = ddps_hs_sent,
		 .why = ddps_hs_why,
		 .take = ddps_hs_take },
	.dtls = { .make = ddps_dhs_new,
		  .free = ddps_dhs_free,
		  .step = ddps_dhs_step,
		  .output = ddps_dhs_output,
		  .sent = ddps_dhs_sent,
		  .why = ddps_dhs_why,
		  .take = ddps_dhs_take },
	.dtls_timeout = ddps_dhs_timeout,
	.dtls_greet = ddps_dhs_greet,
	.dtls_witness = ddps_dhs_witness,
	.witness_free = ddps_witness_free,
	.witness_judge = ddps_witness_judge,
	.aead = ddps_aead_best,

	.check = ddps_creds_check,
	.make = ddps_creds_make,
};
