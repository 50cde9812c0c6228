/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: numbers, sizes, seconds, lists, private data. */
#include "cli/optval.h"
#include "cli/text.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Decimal digits only; @end is where they stop.  Return: 0 or -1. */
static int digits(const char *s, const char **end, uint64_t *v)
{
	*v = 0;
	if (!isdigit((unsigned char)*s))
		return -1;
	for (; isdigit((unsigned char)*s); s++) {
		unsigned d = (unsigned)(*s - '0');

		if (*v > (UINT64_MAX - d) / 10)
			return -1;
		*v = *v * 10 + d;
	}
	*end = s;
	return 0;
}

static int read_option_number(const char *s, uint64_t *v)
{
	return digits(s, &s, v) || *s ? -1 : 0;
}

static int size(const char *s, uint64_t *v)
{
	static const char suffix[] = "KMGT";
	const char *at;
	unsigned shift;

	if (digits(s, &s, v))
		return -1;
	if (!*s)
		return 0;
	at = strchr(suffix, toupper((unsigned char)*s));
	if (!at || (s[1] && strcmp(s + 1, "iB") != 0)) /* "64KiB" is how sizes are printed */
		return -1;
	shift = 10 * (unsigned)(at - suffix + 1);
	if (*v > UINT64_MAX >> shift)
		return -1;
	*v <<= shift;
	return 0;
}

/* "2", "0.25": milliseconds, at most three decimals. */
static int read_option_seconds(const char *s, uint64_t *ms)
{
	uint64_t part = 0;
	const char *point;

	if (digits(s, &s, ms) || *ms > UINT32_MAX)
		return -1;
	*ms *= 1000;
	if (!*s)
		return 0;
	point = s;
	if (*point != '.' || digits(point + 1, &s, &part) || *s || s - point > 4)
		return -1;
	for (long n = s - point; n < 4; n++)
		part *= 10;
	*ms += part;
	return 0;
}

static int rtr_list(const char *s, unsigned *out)
{
	static const char *const name[] = { "send", "write", "read" };
	static const unsigned bit[] = { DDPS_RTR_SEND, DDPS_RTR_WRITE, DDPS_RTR_READ };
	unsigned set = 0;

	for (;;) {
		size_t n = strcspn(s, ","), i;

		for (i = 0; i < 3; i++)
			if (strlen(name[i]) == n && !strncmp(s, name[i], n))
				break;
		if (i == 3)
			return -1;
		set |= bit[i];
		if (!s[n])
			break;
		s += n + 1;
	}
	*out = set;
	return 0;
}

/* The content of a file; one octet more than fits is enough to know that it is too long. */
static int pd_file(struct optval_pd *pd, const char *path, char *why, size_t why_len)
{
	uint8_t buf[DDPS_PD_MAX + 1];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		snprintf(why, why_len, "private data file '%s': %s", path, strerror(errno));
		return -1;
	}
	n = fread(buf, 1, sizeof buf, f);
	if (ferror(f) || n > DDPS_PD_MAX) {
		snprintf(why, why_len, "private data file '%s': %s", path,
			 ferror(f) ? strerror(errno)
				   : "longer than the protocol's limit of 512 octets");
		fclose(f);
		return -1;
	}
	fclose(f);
	memcpy(pd->b, buf, n);
	pd->len = n;
	return 0;
}

static int read_option_private_data(struct optval_pd *pd, const char *arg, char *why,
				    size_t why_len)
{
	size_t n = strlen(arg);

	if (*arg == '@')
		return pd_file(pd, arg + 1, why, why_len);
	if (!strncmp(arg, "hex:", 4)) {
		long got = text_unhex(pd->b, sizeof pd->b, arg + 4);

		if (got >= 0) {
			pd->len = (size_t)got;
			return 0;
		}
		if (n - 4 <= 2 * sizeof pd->b) {
			snprintf(why, why_len,
				 "--private-data hex: takes pairs of hexadecimal digits");
			return -1;
		}
		n = (n - 4) / 2;
	}
	if (n > sizeof pd->b) {
		snprintf(why, why_len, "private data has %zu octets, the protocol's limit is 512",
			 n);
		return -1;
	}
	memcpy(pd->b, arg, n);
	pd->len = n;
	return 0;
}

/* One bad value, one sentence. */
static int refuse_option_value(const char *name, const char *arg, const char *want, char *why,
			       size_t why_len)
{
	snprintf(why, why_len, "--%s takes %s, not '%s'", name, want, arg);
	return -1;
}

static const char form_seconds[] = "seconds (such as 2 or 0.25)";

static int bad_range(const char *name, const char *arg, uint64_t min, uint64_t max,
		     const char *form, char *why, size_t why_len)
{
	char want[100];

	if (form == form_seconds)
		snprintf(want, sizeof want, "%s from %g to %.10g", form, (double)min / 1000,
			 (double)max / 1000);
	else
		snprintf(want, sizeof want, "%s from %llu to %llu", form, (unsigned long long)min,
			 (unsigned long long)max);
	return refuse_option_value(name, arg, want, why, why_len);
}

static int set_numeric(enum optval_kind kind, const char *name, const char *arg, void *at,
		       uint64_t min, uint64_t max, char *why, size_t why_len)
{
	static const char *const form[] = {
		[VAL_RD] = "'ulp' or a number",
		[VAL_NUMBER] = "a number",
		[VAL_SIZE] = "a size (a number, K, M, G or T may follow)",
		[VAL_SECONDS] = form_seconds,
		[VAL_UINT] = "a number (decimal, or hexadecimal after 0x)",
	};
	uint64_t v = 0;
	int err = kind == VAL_SIZE	? size(arg, &v)
		  : kind == VAL_SECONDS ? read_option_seconds(arg, &v)
		  : kind == VAL_UINT	? text_number(arg, &v)
					: read_option_number(arg, &v);

	if (kind == VAL_RD && !strcmp(arg, "ulp"))
		v = DDPS_RD_ULP;
	else if (err || v < min || v > max)
		return bad_range(name, arg, min, max, form[kind], why, why_len);
	if (kind == VAL_RD)
		*(uint16_t *)at = (uint16_t)v;
	else if (kind == VAL_SIZE || kind == VAL_UINT)
		*(uint64_t *)at = v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

/* "64,4K,1M"; what is there already is replaced. */
static int set_sizes(const char *name, const char *arg, struct optval_sizes *out, uint64_t min,
		     uint64_t max, char *why, size_t why_len)
{
	char one[24];
	size_t n;

	out->n = 0;
	for (const char *s = arg;; s += n + 1) {
		n = strcspn(s, ",");
		if (out->n == OPTVAL_SIZES_MAX) {
			snprintf(why, why_len, "--%s takes at most %d sizes", name,
				 OPTVAL_SIZES_MAX);
			return -1;
		}
		snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : sizeof one), s);
		if (n >= sizeof one ||
		    set_numeric(VAL_SIZE, name, one, &out->v[out->n], min, max, why, why_len))
			return bad_range(name, arg, min, max,
					 "sizes with commas between (K, M, G or T may follow a "
					 "number), each",
					 why, why_len);
		out->n++;
		if (!s[n])
			return 0;
	}
}

static int add_value(struct optval_list *l, const char *name, const char *arg, char *why,
		     size_t why_len)
{
	if (l->n == OPTVAL_LIST_MAX) {
		snprintf(why, why_len, "--%s is given more than %d times", name, OPTVAL_LIST_MAX);
		return -1;
	}
	l->at[l->n++] = arg;
	return 0;
}

/* Which one of "send|write|read". */
static int read_option_word(const char *name, const char *form, const char *arg, unsigned *out,
			    char *why, size_t why_len)
{
	size_t len = strlen(arg), n;
	char want[80];

	*out = 0;
	for (const char *s = form;; s += n + 1, ++*out) {
		n = strcspn(s, "|");
		if (n == len && !memcmp(s, arg, n))
			return 0;
		if (!s[n])
			break;
	}
	snprintf(want, sizeof want, "one of %s", form);
	return refuse_option_value(name, arg, want, why, why_len);
}

int optval_set(enum optval_kind kind, const char *name, const char *form, const char *arg, void *at,
	       uint64_t min, uint64_t max, char *why, size_t why_len)
{
	unsigned *u = at;

	switch (kind) {
	case VAL_FLAG:
		*(bool *)at = true;
		return 0;
	case VAL_RTR:
		if (rtr_list(arg, u))
			return refuse_option_value(name, arg, "a list of send, write, read", why,
						   why_len);
		return 0;
	case VAL_WORD:
		return read_option_word(name, form, arg, u, why, why_len);
	case VAL_SIZES:
		return set_sizes(name, arg, at, min, max, why, why_len);
	case VAL_PD:
		return read_option_private_data(at, arg, why, why_len);
	case VAL_TEXT:
		*(const char **)at = arg;
		return 0;
	case VAL_LIST:
		return add_value(at, name, arg, why, why_len);
	case VAL_RD:
	case VAL_NUMBER:
	case VAL_SIZE:
	case VAL_SECONDS:
	case VAL_UINT:
		return set_numeric(kind, name, arg, at, min, max, why, why_len);
	case VAL_HELP:
	case VAL_VERSION:
		break;
	}
	snprintf(why, why_len, "--%s takes no value", name);
	return -1;
}
