/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of words, and complaints about them. */
#include "edge/fault/vf_words.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int vf_complain(struct vf_reader *r, const char *at, const char *fmt, ...)
{
	va_list ap;

	r->error->line = r->number;
	r->error->column = (unsigned)(at - r->line) + 1;
	va_start(ap, fmt);
	vsnprintf(r->error->why, sizeof r->error->why, fmt, ap);
	va_end(ap);
	for (char *c = r->error->why; *c; c++) /* it goes to a terminal */
		*c = (char)(*c < ' ' || *c == 127 ? '?' : *c);
	return -1;
}

int vf_expected(struct vf_reader *r, struct vf_word w, const char *what)
{
	if (!w.len)
		return vf_complain(r, w.at, "expected %s, not the end of the line", what);
	return vf_complain(r, w.at, "expected %s, not '%.*s'", what, w.len < 40 ? (int)w.len : 40,
			   w.at);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A colon is a word by itself where a blank or the end follows; in addresses it is not. */
static bool ends_word(const struct vf_reader *r, const char *c)
{
	return c == r->end || is_blank(*c) || *c == '#' ||
	       (*c == ':' && (c + 1 == r->end || is_blank(c[1]) || c[1] == '#'));
}

struct vf_word vf_next(struct vf_reader *r)
{
	struct vf_word w;

	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	w = (struct vf_word){ r->at, 0 };
	if (r->at == r->end || *r->at == '#')
		return w;
	do
		w.len++;
	while (!ends_word(r, w.at) && !ends_word(r, w.at + w.len));
	r->at += w.len;
	return w;
}

struct vf_word vf_peek(struct vf_reader *r)
{
	const char *at = r->at;
	struct vf_word w = vf_next(r);

	r->at = at;
	return w;
}

bool vf_is(struct vf_word w, const char *text)
{
	return strlen(text) == w.len && !memcmp(w.at, text, w.len);
}

bool vf_is_name(struct vf_word w, size_t max)
{
	for (size_t i = 0; i < w.len; i++)
		if ((unsigned char)w.at[i] <= ' ' || w.at[i] == 127)
			return false;
	return w.len && w.len < max && !vf_is(w, ":");
}

/* Digits at the beginning of @w.  Return: how many, 0 also if the number is above @max. */
size_t vf_digits(struct vf_word w, uint64_t max, uint64_t *value)
{
	size_t n = 0;

	*value = 0;
	for (; n < w.len && w.at[n] >= '0' && w.at[n] <= '9'; n++) {
		*value = *value * 10 + (uint64_t)(w.at[n] - '0');
		if (*value > max)
			return 0;
	}
	return n;
}
