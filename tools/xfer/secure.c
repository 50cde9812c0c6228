/* SPDX-License-Identifier: BSD-2-Clause */
/* The options --tls-... */
#include "xfer/secure.h"
#include <stddef.h>

bool secure_given(const struct opts *o)
{
	const struct ddps_secure_attr *const a = &o->secure;

	return a->settings || a->cert || a->key || a->ca || a->crl || a->psk || a->psk_identity ||
	       a->peers || a->hosts || a->peer;
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
