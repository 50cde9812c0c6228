/* SPDX-License-Identifier: BSD-2-Clause */
/* The options --tls-... */
#include "xfer/secure.h"
#include <stddef.h>

const char *secure_given(const struct opts *o)
{
	const struct ddps_secure_attr *const a = &o->secure;
	const struct {
		const char *name, *value;
	} given[] = {
		{ "tls", a->settings },
		{ "tls-cert", a->cert },
		{ "tls-key", a->key },
		{ "tls-ca", a->ca },
		{ "tls-crl", a->crl },
		{ "tls-psk", a->psk },
		{ "tls-psk-identity", a->psk_identity },
		{ "tls-peers", a->peers },
		{ "tls-hosts", a->hosts },
		{ "tls-peer", a->peer },
	};

	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		if (given[i].value)
			return given[i].name;
	return NULL;
}

int secure_open(struct ddps_secure **s, const struct opts *o, struct ddps_error *why)
{
	*s = NULL;
	return secure_given(o) ? ddps_secure_open(s, &o->secure, why) : 0;
}

const struct ddps_peer_id *secure_peer(const struct ddps_ep *ep, struct ddps_peer_id *id)
{
	id->struct_size = sizeof *id;
	return !ddps_ep_peer_id(ep, id) && id->how != DDPS_PEER_NONE ? id : NULL;
}
