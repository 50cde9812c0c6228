/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the settings of the process say.  A value that a setting does not take is reported on standard
 * error, with what it does take, and nothing is guessed for it: the device cannot be opened.
 */
#include "verbs/vd_secure.h"
#include "verbs/vd_config.h"
#include "common/system/say.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MS     1000
#define RETRY_MS_MAX 3600000

/* Two words a setting takes, for false and true; other ways to say them follow in pairs. */
static const char *const switches[] = { "off", "on", "false", "true", "no", "yes", "0", "1", NULL };
static const char *const near[] = { "off", "auto", NULL };
static const char *const rules[] = { "stall", "strict", NULL };

struct reader {
	const struct vd_settings *s;
	bool bad;
};

static void refuse_setting(struct reader *r, const char *name, const char *value, const char *takes)
{
	ddps_say("ddpsess: %s=%.60s: it takes %s; the device cannot be opened\n", name, value,
		 takes);
	r->bad = true;
}

/* The value, or NULL where there is none or an empty one, which means the default. */
static const char *get_setting_value(const struct reader *r, const char *name)
{
	const char *v = vd_settings_get(r->s, name);

	return v && *v ? v : NULL;
}

/* Which of two words it is; @words as above. */
static bool choose_setting(struct reader *r, const char *name, const char *const *words,
			   bool otherwise)
{
	const char *v = get_setting_value(r, name);
	char takes[64];

	if (!v)
		return otherwise;
	for (unsigned i = 0; words[i]; i++)
		if (!strcasecmp(words[i], v))
			return i % 2;
	snprintf(takes, sizeof takes, "'%s' or '%s'", words[0], words[1]);
	refuse_setting(r, name, v, takes);
	return otherwise;
}

/* Which of @n words it is, or @n: it is none. */
static unsigned find_setting_word(struct reader *r, const char *name, const char *const *words,
				  unsigned n, const char *takes)
{
	const char *v = get_setting_value(r, name);

	for (unsigned i = 0; v && i < n; i++)
		if (!strcasecmp(words[i], v))
			return i;
	if (v)
		refuse_setting(r, name, v, takes);
	return n;
}

/* Unless it says: that of the face. */
static enum vd_placed read_placed_setting(struct reader *r)
{
	static const char *const words[] = { "off", "writes", "all" };

	return (enum vd_placed)find_setting_word(r, "DDPSESS_PLACED", words, VD_PLACED_FACE,
						 "'off', 'writes' or 'all'");
}

static void read_face(struct reader *r, struct vd_config *c)
{
	enum { ROCE, IB, IWARP };
	static const char *const words[] = { "roce", "ib", "iwarp" };
	const unsigned face =
		find_setting_word(r, "DDPSESS_FACE", words, IWARP + 1, "'iwarp', 'roce' or 'ib'");

	c->roce = face < IWARP;
	c->lids = face == IB;
}

static unsigned read_setting_number(struct reader *r, const char *name, unsigned max,
				    unsigned otherwise)
{
	const char *v = get_setting_value(r, name);
	unsigned long n;
	char takes[64], *end;

	if (!v)
		return otherwise;
	errno = 0;
	n = strtoul(v, &end, 10);
	if (isdigit((unsigned char)*v) && !*end && !errno && n <= max)
		return (unsigned)n;
	snprintf(takes, sizeof takes, "a number from 0 to %u", max);
	refuse_setting(r, name, v, takes);
	return otherwise;
}

static void read_device_name(struct reader *r, struct vd_config *c)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	const char *v = get_setting_value(r, "DDPSESS_DEVICE");

	snprintf(c->name, sizeof c->name, "%s", v ? v : "ddp0");
	if (strlen(c->name) != strspn(c->name, allowed) || (v && strcmp(v, c->name)))
		refuse_setting(r, "DDPSESS_DEVICE", v,
			       "up to 31 letters, digits, '_', '-' and '.'");
}

static void read_path(struct reader *r, const char *name, char path[VD_PATH])
{
	const char *v = get_setting_value(r, name);

	snprintf(path, VD_PATH, "%s", v ? v : "");
	if (v && strlen(v) >= VD_PATH)
		refuse_setting(r, name, v, "up to 1023 octets");
}

/* Keys without a secured wire would leave a program plain whose user thinks that it is not. */
static void read_wire_settings(struct reader *r, struct vd_config *c)
{
	enum { TLS = 2, WIRES = 4 };
	static const char *const wires[WIRES] = { "tcp", "sctp", "tls", "sctps" };
	unsigned wire = find_setting_word(r, "DDPSESS_TRANSPORT", wires, WIRES,
					  "'tcp', 'sctp', 'tls' or 'sctps'");
	const char *keys = NULL;

	for (unsigned i = 0; i < VD_TLS_WORDS; i++) {
		read_path(r, vd_tls_words[i].name, c->tls[i]);
		if (!keys && *c->tls[i])
			keys = vd_tls_words[i].name;
	}
	if (wire == WIRES)
		wire = keys ? TLS : 0;
	c->secured = wire >= TLS;
	snprintf(c->transport, sizeof c->transport, "%s", wires[wire]);
	if (keys && !c->secured)
		ddps_say("ddpsess: DDPSESS_TRANSPORT=%s is plain, and %s is given: choose 'tls' or "
			 "'sctps', or give no keys; the device cannot be opened\n",
			 c->transport, keys);
	else if (!keys && c->secured)
		ddps_say(
			"ddpsess: DDPSESS_TRANSPORT=%s needs keys: DDPSESS_TLS names their file of "
			"settings (sessctl keys makes keys); the device cannot be opened\n",
			c->transport);
	r->bad |= c->secured != !!keys;
}

void vd_config_read(struct vd_config *c)
{
	struct vd_settings s;
	struct reader r = { &s, false };

	vd_settings_read(&s);
	read_wire_settings(&r, c);
	read_device_name(&r, c);
	c->crc = choose_setting(&r, "DDPSESS_CRC", switches, true);
	c->shm = choose_setting(&r, "DDPSESS_SHM", near, false);
	c->p2p = choose_setting(&r, "DDPSESS_P2P", switches, true);
	c->no_wait = choose_setting(&r, "DDPSESS_NO_RECV", rules, false);
	c->strict = choose_setting(&r, "DDPSESS_STRICT", switches, false);
	c->rfc7306 = choose_setting(&r, "DDPSESS_RFC7306", switches, true);
	read_face(&r, c);
	c->placed = read_placed_setting(&r);
	c->stats = choose_setting(&r, "DDPSESS_STATS", switches, false);
	c->retry_ms = read_setting_number(&r, "DDPSESS_RETRY_MS", RETRY_MS_MAX, RETRY_MS);
	read_path(&r, "DDPSESS_FAULTS", c->faults);
	read_path(&r, "DDPSESS_TRACE", c->trace);
	read_path(&r, "DDPSESS_CAPTURE", c->capture);
	read_path(&r, "DDPSESS_WATCH", c->watch);
	read_path(&r, "DDPSESS_PROFILE", c->profile);
	read_path(&r, "DDPSESS_SUPPRESS", c->suppress);
	c->check = choose_setting(&r, "DDPSESS_CHECK", switches, false);
	c->seed = read_setting_number(&r, "DDPSESS_SEED", UINT32_MAX, 1);
	c->shm &= !*c->faults; /* rules that cut the wire are for one of packets */
	c->bad = r.bad;
}
