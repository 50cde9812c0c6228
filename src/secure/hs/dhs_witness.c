/* SPDX-License-Identifier: BSD-2-Clause */
/* What a peer has shown, kept to be judged again. */
#include "secure/hs/dhs_in.h"
#include <stdlib.h>
#include <string.h>

struct ddps_witness {
	struct ddps_creds_want want;
	char *host; /* of it */
	char psk[DDPS_PEER_NAME];
	unsigned ncerts;
	size_t len[DDPS_CREDS_CHAIN];
	uint8_t der[];
};

struct ddps_witness *ddps_dhs_witness(struct ddps_hs *h)
{
	struct ddps_dhs *d = dhs_of(h);
	struct ddps_creds_peer peer;
	struct ddps_witness *w;
	size_t all = 0;

	if (!d->session)
		return NULL;
	ddps_creds_peer_of(&d->creds, d->session, &peer);
	for (unsigned i = 0; i < peer.ncerts && i < DDPS_CREDS_CHAIN; i++)
		all += peer.cert[i].len;
	w = calloc(1, sizeof *w + all);
	if (!w)
		return NULL;
	w->host = d->want.host ? strdup(d->want.host) : NULL;
	w->want = (struct ddps_creds_want){ .server = d->want.server, .host = w->host };
	if (d->want.host && !w->host) {
		ddps_witness_free(w);
		return NULL;
	}
	if (peer.psk)
		strncpy(w->psk, peer.psk, sizeof w->psk - 1);
	w->ncerts = peer.ncerts < DDPS_CREDS_CHAIN ? peer.ncerts : DDPS_CREDS_CHAIN;
	all = 0;
	for (unsigned i = 0; i < w->ncerts; i++) {
		memcpy(w->der + all, peer.cert[i].p, peer.cert[i].len);
		w->len[i] = peer.cert[i].len;
		all += peer.cert[i].len;
	}
	return w;
}

void ddps_witness_free(struct ddps_witness *w)
{
	if (w)
		free(w->host);
	free(w);
}

int ddps_witness_judge(const struct ddps_witness *w, struct ddps_creds_set *set, int64_t now,
		       struct ddps_verdict *why)
{
	struct ddps_creds_peer peer = { .psk = w->psk[0] ? w->psk : NULL, .ncerts = w->ncerts };
	struct ddps_peer_id id = { .struct_size = sizeof id };
	const uint8_t *at = w->der;

	for (unsigned i = 0; i < w->ncerts; i++) {
		peer.cert[i] = (struct ddps_creds_der){ at, w->len[i] };
		at += w->len[i];
	}
	return ddps_creds_judge(set, &peer, &w->want, now, &id, why);
}
