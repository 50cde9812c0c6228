/* SPDX-License-Identifier: BSD-2-Clause */
/* A set: what was read from files. */
#include "secure/creds/set.h"
#include <ddpsess/err_codes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_FILE_MAX 4194304 /* octets of a file of rules or hosts */
#define PSK_FILE_MAX  1048576

void ddps_report(struct ddps_report *r, int code, bool warning, const char *what, const char *file,
		 const char *fmt, ...)
{
	struct ddps_secure_finding f = { .code = code, .what = what, .file = file ? file : "" };
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	f.warning = code && warning;
	f.text = text;
	if (r->each)
		r->each(r->user, &f);
	if (!code || warning)
		return;
	if (!r->faults++)
		ddps_verdict_set(&r->first, code, 0, "%s%.90s%s%s", file ? "" : what,
				 file ? file : "", file ? " " : ": ", text);
}

void ddps_report_lapse(struct ddps_report *r, int code, const char *what, const char *file,
		       const char *fmt, ...)
{
	struct ddps_report one = { .faults = 0 };
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	ddps_report(r->old ? &one : r, code, false, what, file, "%s", text);
	if (one.faults && !r->lapse.code)
		r->lapse = one.first;
}

/* ---- files of lines ---- */

typedef int take_text_fn(struct ddps_list *l, char *text, char *why, size_t why_len);

static void load_list(struct ddps_creds_set *set, enum ddps_setting s, struct ddps_list *l,
		      take_text_fn *take, struct ddps_report *r)
{
	const char *const file = set->settings.value[s], *const what = ddps_setting_word(s);
	struct ddps_vault v;
	char why[240];
	int err;

	if (!file)
		return;
	err = ddps_file_read(&v, file, LIST_FILE_MAX, DDPS_FILE_RULES, &set->stamp[s], why,
			     sizeof why);
	if (!err)
		err = take(l, (char *)v.p, why, sizeof why);
	if (!err && s == DDPS_SET_HOSTS && !l->n) { /* without it more peers would do */
		snprintf(why, sizeof why, "has no line that counts");
		err = DDPS_E_CONFIG;
	}
	ddps_vault_free(&v);
	if (err)
		ddps_report(r, err, false, what, file, "%s", why);
	else
		ddps_report(r, 0, false, what, file, "has %u line%s that count", l->n,
			    l->n == 1 ? "" : "s");
}

static void load_psks(struct ddps_creds_set *set, struct ddps_report *r)
{
	const char *const file = set->settings.value[DDPS_SET_PSK],
			  *const me = set->settings.value[DDPS_SET_PSK_IDENTITY];
	const unsigned before = r->faults;
	struct ddps_vault v;
	char why[240];
	int err = ddps_file_read(&v, file, PSK_FILE_MAX, DDPS_FILE_SECRET,
				 &set->stamp[DDPS_SET_PSK], why, sizeof why);

	if (!err) {
		err = ddps_psks_take(&set->psks, &v, why, sizeof why);
		ddps_vault_free(&v);
	}
	if (err) {
		ddps_report(r, err, false, "psk", file, "%s", why);
		return;
	}
	if (!set->psks.n)
		ddps_report_lapse(r, DDPS_E_CONFIG, "psk", file,
				  "has no key in it, so nobody comes by one");
	else if (me && !ddps_psks_mine(&set->psks, me))
		ddps_report_lapse(r, DDPS_E_PSK_UNKNOWN, "psk-identity", file,
				  "has no key of '%.60s', as whom this side is to connect", me);
	if (r->faults > before)
		return;
	if (gnutls_psk_allocate_server_credentials(&set->psk_server) ||
	    gnutls_psk_allocate_client_credentials(&set->psk_client)) {
		ddps_report(r, DDPS_E_NOMEM, false, "psk", file, "out of memory");
		return;
	}
	gnutls_psk_set_server_credentials_function2(set->psk_server, ddps_psk_of_peer);
	gnutls_psk_set_client_credentials_function2(set->psk_client, ddps_psk_to_dial);
	ddps_report(r, 0, false, "psk", file, "has %u key%s, and only this user can read it",
		    set->psks.n, set->psks.n == 1 ? "" : "s");
}

static void open_keylog(struct ddps_creds_set *set, struct ddps_report *r)
{
	const char *const file = set->settings.value[DDPS_SET_KEYLOG];
	char why[240];
	int err;

	if (!file)
		return;
	err = ddps_file_append(&set->keylog, file, r->each != NULL, why, sizeof why);
	if (err && r->old)
		return;
	if (set->keylog >= 0)
		(void)fstat(set->keylog, &set->keylog_self);
	ddps_report(r, err ? err : DDPS_E_KEY_OPEN, !err, ddps_setting_word(DDPS_SET_KEYLOG), file,
		    "%s",
		    err ? why
			: "receives the secrets of connections: whoever reads it can read all that "
			  "is sent");
}

/* Of certificate, key and PSK, whose folders nobody has judged: what is wrong with the others is a fault. */
static void warn_of_writers(const struct ddps_settings *s, struct ddps_report *r)
{
	const char *how;

	for (int i = 0; i < DDPS_SET_FILES; i++)
		if (ddps_setting_kind((enum ddps_setting)i) != DDPS_FILE_RULES && s->value[i] &&
		    ddps_file_is_open(s->value[i], &how))
			ddps_report(r, DDPS_E_CONFIG, true, ddps_setting_word((enum ddps_setting)i),
				    s->value[i], "%s", how);
}

static void load_peers(struct ddps_creds_set *set, struct ddps_report *r)
{
	const char *const peer = set->settings.value[DDPS_SET_PEER];
	char why[240];

	if (peer && ddps_list_peers(&set->peers, peer, why, sizeof why))
		ddps_report(r, DDPS_E_CONFIG, false, "peer", NULL, "%s", why);
	set->has_rules = set->settings.value[DDPS_SET_PEERS];
	load_list(set, DDPS_SET_PEERS, &set->rules, ddps_list_rules, r);
	load_list(set, DDPS_SET_HOSTS, &set->hosts, ddps_list_hosts, r);
}

/* ---- all of it ---- */

/* Which of the files have to be there together. */
static bool check_complete(const struct ddps_settings *s, struct ddps_report *r)
{
	static const enum ddps_setting need[] = { DDPS_SET_CERT, DDPS_SET_KEY, DDPS_SET_CA };
	const bool x509 = s->value[DDPS_SET_CERT] || s->value[DDPS_SET_KEY] ||
			  s->value[DDPS_SET_CA] || s->value[DDPS_SET_CRL];
	const unsigned before = r->faults;

	if (!x509 && !s->value[DDPS_SET_PSK])
		ddps_report(r, DDPS_E_NO_CERT, false, "cert", s->file,
			    "names neither cert, key and ca, nor psk: a secured wire needs one of "
			    "them");
	for (size_t i = 0; x509 && i < sizeof need / sizeof *need; i++)
		if (!s->value[need[i]])
			ddps_report(r, need[i] == DDPS_SET_CERT ? DDPS_E_NO_CERT : DDPS_E_CONFIG,
				    false, ddps_setting_word(need[i]), s->file,
				    "lacks '%s': cert, key and ca are needed together",
				    ddps_setting_word(need[i]));
	return r->faults == before;
}

int ddps_set_load(struct ddps_creds_set **out, const struct ddps_settings *given, int64_t now,
		  struct ddps_report *r)
{
	struct ddps_creds_set *set = calloc(1, sizeof *set);
	char why[240] = "";
	int err;

	*out = NULL;
	if (!set) {
		ddps_report(r, DDPS_E_NOMEM, false, "cert", NULL, "out of memory");
		return DDPS_E_NOMEM;
	}
	atomic_init(&set->refs, 1);
	set->keylog = -1;
	err = ddps_settings_read(&set->settings, given, &set->settings_stamp, why, sizeof why);
	if (err)
		ddps_report(r, err, false, "settings", given->file, "%s", why);
	else if (check_complete(&set->settings, r)) {
		if (set->settings.value[DDPS_SET_CERT])
			ddps_set_load_x509(set, now, r);
		if (set->settings.value[DDPS_SET_PSK])
			load_psks(set, r);
		load_peers(set, r);
		open_keylog(set, r);
		warn_of_writers(&set->settings, r);
	}
	if (r->faults) {
		ddps_set_free(set);
		return r->first.code;
	}
	*out = set;
	return 0;
}

bool ddps_set_intact(const struct ddps_creds_set *set)
{
	return (!set->psks.psk || ddps_vault_intact(&set->psks.vault)) &&
	       (!set->own || ddps_secret_key_intact(set->own->key));
}

void ddps_set_free(struct ddps_creds_set *set)
{
	ddps_cert_pair_free(set->own);
	if (set->psk_server)
		gnutls_psk_free_server_credentials(set->psk_server);
	if (set->psk_client)
		gnutls_psk_free_client_credentials(set->psk_client);
	if (set->trust)
		gnutls_x509_trust_list_deinit(set->trust, 1);
	for (unsigned i = 0; !set->trust && i < set->nca; i++)
		gnutls_x509_crt_deinit(set->ca[i]);
	gnutls_free(set->ca);
	free(set->known);
	for (unsigned i = 0; i < set->ncrl; i++)
		gnutls_x509_crl_deinit(set->crl[i]);
	gnutls_free(set->crl);
	free(set->crl_by);
	if (ddps_keylog_is_ours(set))
		close(set->keylog);
	ddps_psks_free(&set->psks);
	ddps_list_free(&set->rules);
	ddps_list_free(&set->hosts);
	ddps_list_free(&set->peers);
	ddps_settings_free(&set->settings);
	free(set);
}
