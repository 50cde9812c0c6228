/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for people: sizes, rates, times, hexadecimal, and octets that are safe to print. */
#include "cli/text.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Length of the well-formed UTF-8 sequence at @p, its code point in @cp; 0: none. */
static size_t utf8_next(const uint8_t *p, size_t left, uint32_t *cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80	       ? 1
		   : p[0] >> 5 == 0x06 ? 2
		   : p[0] >> 4 == 0x0e ? 3
		   : p[0] >> 3 == 0x1e ? 4
				       : 0;

	if (!n || n > left)
		return 0;
	*cp = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (p[i] & 0x3f);
	}
	/* overlong forms, surrogates, beyond Unicode */
	if (*cp < least[n] || (*cp >= 0xd800 && *cp < 0xe000) || *cp > 0x10ffff)
		return 0;
	return n;
}

/* C0, DEL, C1; what changes the order or the lines of the text around it (Unicode: bidi); and what nobody
 * sees, so that two texts look the same.  What joins letters is a part of words. */
static bool is_control(uint32_t cp)
{
	static const uint32_t bad[][2] = {
		{ 0, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	    { 0x61c, 0x61c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200b }, { 0x200e, 0x200f }, { 0x2028, 0x202e },
		{ 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f }
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (cp >= bad[i][0] && cp <= bad[i][1])
			return true;
	return false;
}

bool text_is_clean(const void *src, size_t len)
{
	const uint8_t *p = src;
	uint32_t cp;

	while (len) {
		size_t n = utf8_next(p, len, &cp);

		if (!n || is_control(cp))
			return false;
		p += n;
		len -= n;
	}
	return true;
}

void text_clean(char *dst, size_t size, const void *src, size_t len)
{
	const uint8_t *p = src;
	size_t used = 0;

	while (len) {
		uint32_t cp;
		size_t n = utf8_next(p, len, &cp);
		bool good = n && !is_control(cp);

		if (!n)
			n = 1;
		if (used + (good ? n : 1) >= size)
			break;
		if (good)
			memcpy(dst + used, p, n);
		else
			dst[used] = '?';
		used += good ? n : 1;
		p += n;
		len -= n;
	}
	dst[used] = 0;
}

static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

void text_size(char *dst, size_t size, uint64_t octets)
{
	double v = (double)octets / 1024;
	size_t u = 0;

	if (octets < 1024) {
		snprintf(dst, size, "%u octet%s", (unsigned)octets, octets == 1 ? "" : "s");
		return;
	}
	for (; v >= 1024 && u + 1 < sizeof unit / sizeof *unit; u++)
		v /= 1024;
	if (v == (double)(uint64_t)v)
		snprintf(dst, size, "%.0f %s", v, unit[u]);
	else
		snprintf(dst, size, "%.1f %s", v, unit[u]);
}

void text_rate(char *dst, size_t size, double octets_per_second)
{
	double v = octets_per_second / 1024;
	size_t u = 0;

	for (; v >= 1024 && u + 1 < sizeof unit / sizeof *unit; u++)
		v /= 1024;
	snprintf(dst, size, "%.1f %s/s", v, unit[u]);
}

void text_time(char *dst, size_t size, double seconds)
{
	/* beyond a year nobody reads the minutes; the bound keeps the cast defined */
	unsigned s = seconds > 3e7 ? 30000000u : (unsigned)seconds;

	if (seconds < 10)
		snprintf(dst, size, "%.2f s", seconds);
	else if (seconds < 60)
		snprintf(dst, size, "%.1f s", seconds);
	else if (s < 3600)
		snprintf(dst, size, "%u:%02u", s / 60, s % 60);
	else
		snprintf(dst, size, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
}

void text_hex(char *dst, const uint8_t *src, size_t len)
{
	static const char digit[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*dst++ = digit[src[i] >> 4];
		*dst++ = digit[src[i] & 15];
	}
	*dst = 0;
}

/* The value of a hexadecimal digit, or -1. */
static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

long text_unhex(uint8_t *dst, size_t size, const char *src)
{
	size_t n = strlen(src);

	if (n % 2 || n / 2 > size)
		return -1;
	for (size_t i = 0; i < n; i += 2) {
		int hi = digit_value(src[i]), lo = digit_value(src[i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		dst[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return (long)(n / 2);
}

int text_number(const char *s, uint64_t *v)
{
	unsigned base = !strncmp(s, "0x", 2) ? 16 : 10;
	uint64_t n = 0;

	s += base == 16 ? 2 : 0;
	if (!*s)
		return -1;
	for (; *s; s++) {
		int d = digit_value(*s);

		if (d < 0 || (unsigned)d >= base || n > (UINT64_MAX - (unsigned)d) / base)
			return -1;
		n = n * base + (unsigned)d;
	}
	*v = n;
	return 0;
}

size_t text_fit(const char *s, size_t columns)
{
	size_t n = 0;

	/* octets 10xxxxxx go on with a character */
	for (; s[n]; n++)
		if (((uint8_t)s[n] & 0xc0) != 0x80 && !columns--)
			break;
	return n;
}

const char *text_file_advice(int sys_errno)
{
	switch (sys_errno) {
	case ENOENT:
	case ENOTDIR:
		return "check the path; directories in it must exist";
	case EACCES:
	case EPERM:
		return "another path, or the right to use this one";
	case EISDIR:
		return "a file's name";
	case ELOOP:
		return "the file itself: a link is not followed";
	case ENOSPC:
	case EDQUOT:
		return "make room, or another file system";
	case EFBIG:
		return "a larger limit of file sizes (ulimit -f)";
	case EROFS:
		return "another path: this one cannot be written to";
	default:
		return NULL;
	}
}

#define WORD	  40u
#define USUAL	  80u
#define WIDEST	  10000u
#define NARROWEST 40u

unsigned text_distance(const char *a, const char *b)
{
	unsigned row[WORD + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > WORD || m > WORD)
		return UINT_MAX;
	for (unsigned k = 0; k <= m; k++)
		row[k] = k;
	for (size_t i = 0; i < n; i++) {
		unsigned corner = row[0];

		row[0] = (unsigned)i + 1;
		for (size_t k = 0; k < m; k++) {
			unsigned best = corner + (a[i] != b[k]);

			corner = row[k + 1];
			best = best < corner + 1 ? best : corner + 1;
			row[k + 1] = best < row[k] + 1 ? best : row[k] + 1;
		}
	}
	return row[m];
}

const char *text_nearer(const char *word, const char *near, const char *name)
{
	const unsigned d = text_distance(word, name);

	return d < (near ? text_distance(word, near) : 3) && d < strlen(name) ? name : near;
}

void text_fold(FILE *f, const char *text, unsigned at, unsigned indent, unsigned columns)
{
	bool first = true;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (!first && at + 1 > indent && at + 1 + n > columns) {
			fprintf(f, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		fprintf(f, "%s%.*s", first ? "" : " ", (int)n, text);
		at += (unsigned)n + !first;
		first = false;
		text += n + (text[n] == ' ');
	}
	fputc('\n', f);
}

/* COLUMNS, which is @given, or the terminal's; 0: neither. */
static unsigned long find_width(FILE *f, bool *given)
{
	const char *columns = getenv("COLUMNS");
	unsigned long n = columns ? strtoul(columns, NULL, 10) : 0;
	struct winsize w;

	*given = n;
	if (!n && !ioctl(fileno(f), TIOCGWINSZ, &w))
		n = w.ws_col;
	return !n ? 0 : n < NARROWEST ? NARROWEST : n > WIDEST ? WIDEST : n;
}

unsigned text_columns(FILE *f)
{
	bool given;
	unsigned long n = find_width(f, &given);

	/* long lines are hard to read */
	return !n || (!given && n > USUAL) ? USUAL : (unsigned)n;
}

unsigned text_width(FILE *f)
{
	bool given;
	unsigned long n = find_width(f, &given);

	return n ? (unsigned)n : UINT_MAX;
}
