/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TERM_CODES_H
#define DDPS_TERM_CODES_H
/*
 * Errors that a Terminate carries: layer (0 RDMAP, 1 DDP, 2 LLP), type, code, as RFC 6580 3
 * registers them.  Each block names the section that defines it.
 */
#include <ddpsess/err.h>

/* X(name, layer, type, code, text) */
#define DDPS_TERM_CODES(X)                                                                         \
	/* RFC 5040 4.8, figure 9; of a local error the code has no meaning */                     \
	X(RDMAP_LOCAL, 0, 0, 0x00, "RDMAP: local catastrophic error")                              \
	X(RDMAP_STAG, 0, 1, 0x00, "RDMAP remote protection: invalid STag")                         \
	X(RDMAP_BOUNDS, 0, 1, 0x01, "RDMAP remote protection: base or bounds violation")           \
	X(RDMAP_ACCESS, 0, 1, 0x02, "RDMAP remote protection: access rights violation")            \
	X(RDMAP_ASSOCIATION, 0, 1, 0x03,                                                           \
	  "RDMAP remote protection: STag not associated with RDMAP Stream")                        \
	X(RDMAP_WRAP, 0, 1, 0x04, "RDMAP remote protection: tagged offset wrap")                   \
	X(RDMAP_PROTECT_INVALIDATE, 0, 1, 0x09,                                                    \
	  "RDMAP remote protection: STag cannot be invalidated")                                   \
	X(RDMAP_PROTECT, 0, 1, 0xFF, "RDMAP remote protection: unspecified error")                 \
	X(RDMAP_VERSION, 0, 2, 0x05, "RDMAP remote operation: invalid RDMAP version")              \
	X(RDMAP_OPCODE, 0, 2, 0x06, "RDMAP remote operation: unexpected opcode")                   \
	X(RDMAP_STREAM, 0, 2, 0x07,                                                                \
	  "RDMAP remote operation: catastrophic, localized to RDMAP Stream")                       \
	X(RDMAP_GLOBAL, 0, 2, 0x08, "RDMAP remote operation: catastrophic, global")                \
	X(RDMAP_INVALIDATE, 0, 2, 0x09, "RDMAP remote operation: STag cannot be invalidated")      \
	X(RDMAP_OPERATION, 0, 2, 0xFF, "RDMAP remote operation: unspecified error")                \
	/* RFC 5041 8.1, RFC 6580 3.2 */                                                           \
	X(DDP_LOCAL, 1, 0, 0x00, "DDP: local catastrophic error")                                  \
	X(DDP_STAG, 1, 1, 0x00, "DDP tagged: invalid STag")                                        \
	X(DDP_BOUNDS, 1, 1, 0x01, "DDP tagged: base or bounds violation")                          \
	X(DDP_ASSOCIATION, 1, 1, 0x02, "DDP tagged: STag not associated with DDP Stream")          \
	X(DDP_WRAP, 1, 1, 0x03, "DDP tagged: tagged offset wrap")                                  \
	X(DDP_TAGGED_VERSION, 1, 1, 0x04, "DDP tagged: invalid DDP version")                       \
	X(DDP_QUEUE, 1, 2, 0x01, "DDP untagged: invalid queue number")                             \
	X(DDP_NO_BUFFER, 1, 2, 0x02, "DDP untagged: invalid MSN, no buffer available")             \
	X(DDP_MSN, 1, 2, 0x03, "DDP untagged: invalid MSN, range is not valid")                    \
	X(DDP_OFFSET, 1, 2, 0x04, "DDP untagged: invalid message offset")                          \
	X(DDP_TOO_LONG, 1, 2, 0x05, "DDP untagged: message too long for available buffer")         \
	X(DDP_UNTAGGED_VERSION, 1, 2, 0x06, "DDP untagged: invalid DDP version")                   \
	X(DDP_LLP, 1, 3, 0x00, "DDP: reserved for the LLP")                                        \
	/* RFC 5044 8 */                                                                           \
	X(MPA_CLOSED, 2, 0, 0x01, "MPA: TCP connection closed, terminated or lost")                \
	X(MPA_CRC, 2, 0, 0x02, "MPA: CRC error")                                                   \
	X(MPA_MARKER, 2, 0, 0x03, "MPA: marker and ULPDU length mismatch")                         \
	X(MPA_FRAME, 2, 0, 0x04, "MPA: invalid Request or Reply frame")                            \
	/* RFC 6581 8 */                                                                           \
	X(MPA_LOCAL, 2, 0, 0x05, "MPA: local catastrophic error")                                  \
	X(MPA_IRD, 2, 0, 0x06, "MPA: insufficient IRD resources")                                  \
	X(MPA_RTR, 2, 0, 0x07, "MPA: no matching RTR option")

enum ddps_term_code {
#define DDPS_X(name, layer, etype, code, text)                                                     \
	DDPS_TERM_##name = (layer) << 16 | (etype) << 8 | (code),
	DDPS_TERM_CODES(DDPS_X)
#undef DDPS_X
};

static inline struct ddps_triple ddps_term_triple(enum ddps_term_code t)
{
	return (struct ddps_triple){ (uint8_t)(t >> 16), (uint8_t)(t >> 8), (uint8_t)t };
}

static inline enum ddps_term_code ddps_term_of(const struct ddps_triple *t)
{
	return (enum ddps_term_code)(t->layer << 16 | t->etype << 8 | t->code);
}

#endif
