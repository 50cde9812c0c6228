/* SPDX-License-Identifier: BSD-2-Clause */
/* Judges a peer: what it showed, its name, the list, the program. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is judged by names. */
struct judged {
	const struct ddps_creds_set *set;
	struct ddps_who who;
	char psk[DDPS_PEER_NAME];     /* what who.psk points to */
	const struct ddps_name *name; /* that was accepted, or NULL */
	struct ddps_peer_id *id;
	struct ddps_verdict *v;
};

static void set_name(struct judged *j, const struct ddps_name *which)
{
	if (which)
		ddps_name_text(j->id->name, sizeof j->id->name, which);
}

/* All names of the peer in one line, as far as there is room. */
static void print_names(char *dst, size_t size, const struct ddps_peer_id *id)
{
	const char *const names = id->names[0] ? id->names : "no name";
	const size_t len = strnlen(names, size - 1);

	memcpy(dst, names, len);
	dst[len] = 0;
	for (size_t i = 0; i < len; i++)
		if (dst[i] == '\n')
			dst[i] = ' ';
}

/* ---- whom this side wants ---- */

static bool fits_any(struct judged *j, const struct ddps_list *l, const struct ddps_name **which)
{
	for (unsigned i = 0; i < l->n; i++)
		if (ddps_pattern_fits(&l->rule[i].pat, &j->who, true, which))
			return true;
	return false;
}

static int refuse_name(struct judged *j, const char *wanted)
{
	char names[80];

	if (j->who.psk)
		return ddps_verdict_set(
			j->v, DDPS_E_CERT_NAME, DDPS_ALERT_ACCESS_DENIED,
			"the peer is not '%.60s' but %.80s: a pre-shared key has no "
			"other name",
			wanted, j->id->name);
	print_names(names, sizeof names, j->id);
	return ddps_verdict_set(j->v, DDPS_E_CERT_NAME, DDPS_ALERT_BAD_CERTIFICATE,
				"the peer is not '%.60s' but has %s: reach it by that name, or set "
				"'peer'",
				wanted, names);
}

static int judge_one(struct judged *j, const struct ddps_pattern *pat)
{
	char text[80];

	if (ddps_pattern_fits(pat, &j->who, true, &j->name)) {
		set_name(j, j->name);
		return 0;
	}
	ddps_pattern_text(text, sizeof text, pat);
	return refuse_name(j, text);
}

static int judge_list(struct judged *j, const struct ddps_list *l, const char *wanted)
{
	if (!fits_any(j, l, &j->name))
		return refuse_name(j, wanted);
	set_name(j, j->name);
	return 0;
}

static int judge_host(struct judged *j, const char *host)
{
	struct ddps_pattern pat = { .p = NULL };
	char why[160];
	int err = ddps_pattern_parse(&pat, NULL, host, why, sizeof why);

	if (err)
		ddps_verdict_set(j->v, err, DDPS_ALERT_BAD_CERTIFICATE, "%s", why);
	else
		err = judge_one(j, &pat);
	ddps_pattern_free(&pat);
	return err;
}

/* In place of the URI's host may be the setting, or the file of hosts.  A PSK is for a pair, so that the host
 * says nothing of it. */
static int judge_name(struct judged *j, const struct ddps_creds_want *want)
{
	const struct ddps_pattern *at;

	if (j->set->peers.n)
		return judge_list(j, &j->set->peers, j->set->settings.value[DDPS_SET_PEER]);
	if (want->server || !want->host)
		return 0;
	at = ddps_list_at(&j->set->hosts, want->host);
	if (at)
		return judge_one(j, at);
	return j->who.psk ? 0 : judge_host(j, want->host);
}

/* ---- who may come in ---- */

static int judge_rules(struct judged *j)
{
	const char *const file = j->set->settings.value[DDPS_SET_PEERS];
	const struct ddps_name *which = NULL;
	const struct ddps_rule *r;
	char names[70];

	if (!j->set->has_rules)
		return 0;
	r = ddps_list_find(&j->set->rules, &j->who, &which);
	if (r && r->allow) {
		if (!j->name)
			set_name(j, which);
		return 0;
	}
	print_names(names, sizeof names, j->id);
	if (r)
		return ddps_verdict_set(j->v, DDPS_E_NOT_LISTED, DDPS_ALERT_ACCESS_DENIED,
					"%.60s:%u denies the peer, which has %s", file, r->line,
					names);
	return ddps_verdict_set(j->v, DDPS_E_NOT_LISTED, DDPS_ALERT_ACCESS_DENIED,
				"no rule of %.60s allows the peer, which has %s: add one", file,
				names);
}

static int judge_program(struct judged *j)
{
	const struct ddps_settings *const s = &j->set->settings;

	if (!s->judge || !s->judge(s->judge_user, j->id))
		return 0;
	return ddps_verdict_set(j->v, DDPS_E_NOT_LISTED, DDPS_ALERT_ACCESS_DENIED,
				"this program does not want the peer '%.100s'", j->id->name);
}

static int judge_names(struct judged *j, const struct ddps_creds_want *want)
{
	int err = judge_name(j, want);

	if (!err)
		err = judge_rules(j);
	return err ? err : judge_program(j);
}

/* ---- PSK ---- */

static int judge_psk(struct ddps_creds_set *set, const char *identity,
		     const struct ddps_creds_want *want, struct judged *j)
{
	const struct ddps_psk *p = ddps_psks_find(&set->psks, identity, strlen(identity));
	const char *const me = set->settings.value[DDPS_SET_PSK_IDENTITY];
	const size_t len = p ? p->name_len : strlen(identity);
	char shown[DDPS_PEER_NAME];

	j->id->how = DDPS_PEER_PSK;
	memcpy(j->psk, identity, len < sizeof j->psk ? len : sizeof j->psk - 1);
	ddps_name_clean(shown, sizeof shown, j->psk, strlen(j->psk));
	strcpy(j->id->name, "psk:");
	ddps_name_clean(j->id->name + 4, sizeof j->id->name - 4, j->psk, strlen(j->psk));
	memcpy(j->id->names, j->id->name, sizeof j->id->name);
	/* gone since the handshake, or its own, which would be this side talking to itself */
	if (!p || (want->server && me && ddps_psk_is(p, me)))
		return ddps_verdict_set(j->v, DDPS_E_PSK_UNKNOWN, DDPS_ALERT_UNKNOWN_PSK_IDENTITY,
					"the PSK identity '%.60s' is %s %.60s", shown,
					p ? "this side's own, says" : "not in",
					p ? "psk-identity" : set->settings.value[DDPS_SET_PSK]);
	j->who.psk = j->psk;
	return judge_names(j, want);
}

int ddps_creds_judge(struct ddps_creds_set *set, const struct ddps_creds_peer *peer,
		     const struct ddps_creds_want *want, int64_t now, struct ddps_peer_id *id,
		     struct ddps_verdict *why)
{
	struct judged j = { .set = set, .id = id, .v = why };
	struct ddps_shown shown;
	int err;

	*id = (struct ddps_peer_id){ .struct_size = sizeof *id };
	*why = (struct ddps_verdict){ .code = 0 };
	if (peer->psk && set->psk_server)
		return judge_psk(set, peer->psk, want, &j);
	if (!set->own)
		return ddps_verdict_set(why, DDPS_E_NO_CERT, DDPS_ALERT_CERTIFICATE_REQUIRED,
					"the peer used no pre-shared key: it needs one of %.60s",
					set->settings.value[DDPS_SET_PSK]);
	err = ddps_chain_judge(set, peer, want, now, id, &shown, why);
	if (!err) {
		j.who = (struct ddps_who){ .name = shown.name,
					   .nnames = shown.nnames,
					   .fp = id->fingerprint,
					   .issuer = id->issuer };
		set_name(&j, shown.nnames ? &shown.name[0] : NULL);
		if (!shown.nnames) {
			const struct ddps_pattern fp = { .kind = DDPS_NAME_FP,
							 .p = id->fingerprint,
							 .len = sizeof id->fingerprint };

			ddps_pattern_text(id->name, sizeof id->name, &fp);
		}
		err = judge_names(&j, want);
	}
	ddps_shown_free(&shown);
	return err;
}
