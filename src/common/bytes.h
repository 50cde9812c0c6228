/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_BYTES_H
#define DDPS_BYTES_H
/*
 * Cursors over octet strings, network byte order.  A read or write beyond the end sets the
 * sticky @failed and yields zeros: test it once, before any value is used.  No object is longer than
 * PTRDIFF_MAX: a length above is one that was subtracted wrongly, and its cursor has failed from the
 * start.
 */
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ddps_rbuf {
	const uint8_t *p, *end;
	bool failed;
};

struct ddps_wbuf {
	uint8_t *p, *end;
	bool failed;
};

static inline struct ddps_rbuf ddps_rbuf_init(const void *buf, size_t len)
{
	const uint8_t *p = buf;

	if (len > PTRDIFF_MAX)
		return (struct ddps_rbuf){ .p = p, .end = p, .failed = true };
	return (struct ddps_rbuf){ .p = p, .end = p + len };
}

static inline size_t ddps_rbuf_left(const struct ddps_rbuf *r)
{
	return (size_t)(r->end - r->p);
}

/* The next @n octets in place, or NULL. */
static inline const uint8_t *ddps_rbuf_take(struct ddps_rbuf *r, size_t n)
{
	const uint8_t *at = r->p;

	if (r->failed || n > ddps_rbuf_left(r)) {
		r->failed = true;
		return NULL;
	}
	r->p += n;
	return at;
}

static inline uint64_t ddps_rbuf_be(struct ddps_rbuf *r, size_t n)
{
	const uint8_t *at = ddps_rbuf_take(r, n);
	uint64_t v = 0;

	for (size_t i = 0; at && i < n; i++)
		v = v << 8 | at[i];
	return v;
}

static inline uint8_t ddps_rbuf_u8(struct ddps_rbuf *r)
{
	const uint8_t *at = ddps_rbuf_take(r, 1);

	return at ? *at : 0;
}

static inline uint16_t ddps_rbuf_u16(struct ddps_rbuf *r)
{
	const uint8_t *at = ddps_rbuf_take(r, sizeof(uint16_t));
	uint16_t v = 0;

	if (at)
		memcpy(&v, at, sizeof v);
	return be16toh(v);
}

static inline uint32_t ddps_rbuf_u32(struct ddps_rbuf *r)
{
	const uint8_t *at = ddps_rbuf_take(r, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof v);
	return be32toh(v);
}

static inline uint64_t ddps_rbuf_u64(struct ddps_rbuf *r)
{
	const uint8_t *at = ddps_rbuf_take(r, sizeof(uint64_t));
	uint64_t v = 0;

	if (at)
		memcpy(&v, at, sizeof v);
	return be64toh(v);
}

static inline struct ddps_wbuf ddps_wbuf_init(void *buf, size_t len)
{
	uint8_t *p = buf;

	if (len > PTRDIFF_MAX)
		return (struct ddps_wbuf){ .p = p, .end = p, .failed = true };
	return (struct ddps_wbuf){ .p = p, .end = p + len };
}

static inline void ddps_wbuf_bytes(struct ddps_wbuf *w, const void *src, size_t n)
{
	if (w->failed || n > (size_t)(w->end - w->p)) {
		w->failed = true;
		return;
	}
	if (n)
		memcpy(w->p, src, n);
	w->p += n;
}

static inline void ddps_wbuf_be(struct ddps_wbuf *w, uint64_t v, size_t n)
{
	uint8_t b[8];

	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
	ddps_wbuf_bytes(w, b, n);
}

static inline void ddps_wbuf_u8(struct ddps_wbuf *w, uint8_t v)
{
	ddps_wbuf_bytes(w, &v, sizeof v);
}

static inline void ddps_wbuf_u16(struct ddps_wbuf *w, uint16_t v)
{
	v = htobe16(v);
	ddps_wbuf_bytes(w, &v, sizeof v);
}

static inline void ddps_wbuf_u32(struct ddps_wbuf *w, uint32_t v)
{
	v = htobe32(v);
	ddps_wbuf_bytes(w, &v, sizeof v);
}

static inline void ddps_wbuf_u64(struct ddps_wbuf *w, uint64_t v)
{
	v = htobe64(v);
	ddps_wbuf_bytes(w, &v, sizeof v);
}

#endif
