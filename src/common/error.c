/* SPDX-License-Identifier: BSD-2-Clause */
/* Error texts, names of Terminate codes, and building of struct ddps_error. */
#include "common/error.h"
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

const char *ddps_strerror(int err)
{
	switch (err) {
	case DDPS_OK:
		return "success";
#define DDPS_X(name, value, text)                                                                  \
	case value:                                                                                \
		return text;
		DDPS_ERRORS(DDPS_X)
#undef DDPS_X
	default:
		return "unknown error";
	}
}

#define ANY_CODE 0x100

/* RFC 6580 section 3: the registered combinations. */
static const struct {
	uint8_t layer, etype;
	uint16_t code;
	const char *name;
} triples[] = {
	{ 0, 0, ANY_CODE, "RDMAP: local catastrophic error" },
	{ 0, 1, 0x00, "RDMAP remote protection: invalid STag" },
	{ 0, 1, 0x01, "RDMAP remote protection: base or bounds violation" },
	{ 0, 1, 0x02, "RDMAP remote protection: access rights violation" },
	{ 0, 1, 0x03, "RDMAP remote protection: STag not associated with RDMAP Stream" },
	{ 0, 1, 0x04, "RDMAP remote protection: tagged offset wrap" },
	{ 0, 1, 0x09, "RDMAP remote protection: STag cannot be invalidated" },
	{ 0, 1, 0xFF, "RDMAP remote protection: unspecified error" },
	{ 0, 2, 0x05, "RDMAP remote operation: invalid RDMAP version" },
	{ 0, 2, 0x06, "RDMAP remote operation: unexpected opcode" },
	{ 0, 2, 0x07, "RDMAP remote operation: catastrophic, localized to RDMAP Stream" },
	{ 0, 2, 0x08, "RDMAP remote operation: catastrophic, global" },
	{ 0, 2, 0x09, "RDMAP remote operation: STag cannot be invalidated" },
	{ 0, 2, 0xFF, "RDMAP remote operation: unspecified error" },
	{ 1, 0, ANY_CODE, "DDP: local catastrophic error" },
	{ 1, 1, 0x00, "DDP tagged: invalid STag" },
	{ 1, 1, 0x01, "DDP tagged: base or bounds violation" },
	{ 1, 1, 0x02, "DDP tagged: STag not associated with DDP Stream" },
	{ 1, 1, 0x03, "DDP tagged: tagged offset wrap" },
	{ 1, 1, 0x04, "DDP tagged: invalid DDP version" },
	{ 1, 2, 0x01, "DDP untagged: invalid queue number" },
	{ 1, 2, 0x02, "DDP untagged: invalid MSN, no buffer available" },
	{ 1, 2, 0x03, "DDP untagged: invalid MSN, range is not valid" },
	{ 1, 2, 0x04, "DDP untagged: invalid message offset" },
	{ 1, 2, 0x05, "DDP untagged: message too long for available buffer" },
	{ 1, 2, 0x06, "DDP untagged: invalid DDP version" },
	{ 1, 3, ANY_CODE, "DDP: reserved for the LLP" },
	{ 2, 0, 0x01, "MPA: TCP connection closed, terminated or lost" },
	{ 2, 0, 0x02, "MPA: CRC error" },
	{ 2, 0, 0x03, "MPA: marker and ULPDU length mismatch" },
	{ 2, 0, 0x04, "MPA: invalid Request or Reply frame" },
	{ 2, 0, 0x05, "MPA: local catastrophic error" },
	{ 2, 0, 0x06, "MPA: insufficient IRD resources" },
	{ 2, 0, 0x07, "MPA: no matching RTR option" },
};

const char *ddps_triple_name(const struct ddps_triple *t)
{
	for (size_t i = 0; i < sizeof triples / sizeof triples[0]; i++)
		if (t->layer == triples[i].layer && t->etype == triples[i].etype &&
		    (triples[i].code == ANY_CODE || t->code == triples[i].code))
			return triples[i].name;
	return "unassigned error";
}

static struct ddps_error make(int code, int sys_errno, const char *fmt, va_list ap)
{
	struct ddps_error e = { .code = code, .sys_errno = sys_errno };

	vsnprintf(e.text, sizeof e.text, fmt, ap);
	return e;
}

struct ddps_error ddps_error_make(int code, int sys_errno, const char *fmt, ...)
{
	struct ddps_error e;
	va_list ap;

	va_start(ap, fmt);
	e = make(code, sys_errno, fmt, ap);
	va_end(ap);
	return e;
}

struct ddps_error ddps_error_triple(int code, struct ddps_triple t, const char *fmt, ...)
{
	struct ddps_error e;
	va_list ap;

	va_start(ap, fmt);
	e = make(code, 0, fmt, ap);
	va_end(ap);
	e.has_triple = true;
	e.triple = t;
	return e;
}

int ddps_err_from_errno(int sys_errno)
{
	switch (sys_errno) {
	case ECONNREFUSED:
		return DDPS_E_REFUSED;
	case ETIMEDOUT:
		return DDPS_E_TIMEDOUT;
	case ECONNRESET:
	case EPIPE:
	case ECONNABORTED:
		return DDPS_E_RESET;
	case ENOMEM:
	case ENOBUFS:
		return DDPS_E_NOMEM;
	default:
		return DDPS_E_SYSTEM;
	}
}
