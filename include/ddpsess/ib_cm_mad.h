/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_CM_MAD_H
#define DDPSESS_IB_CM_MAD_H
/*
 * InfiniBand communication management datagrams (IBA volume 1, chapter 12): every message with
 * every field by name, as octets, and as a table of fields that a tool can walk.  Part of
 * libddpsess-ipoib; include <ddpsess/ipoib_cm.h>.
 */
#include <ddpsess/err_codes.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_CM_MAD_LEN	     256 /* of every MAD */
#define DDPS_CM_HDR_LEN	     24
#define DDPS_CM_CLASS	     0x07
#define DDPS_CM_BASE_VERSION 1
#define DDPS_CM_VERSION	     2
#define DDPS_CM_METHOD	     0x03	 /* Send: requests and replies alike */
#define DDPS_CM_QKEY	     0x80010000u /* of QP 1 */
#define DDPS_CM_ARI_LEN	     72

/* X(name, attribute ID) */
#define DDPS_CM_ATTRS(X)                                                                           \
	X(REQ, 0x0010)                                                                             \
	X(MRA, 0x0011)                                                                             \
	X(REJ, 0x0012)                                                                             \
	X(REP, 0x0013)                                                                             \
	X(RTU, 0x0014)                                                                             \
	X(DREQ, 0x0015)                                                                            \
	X(DREP, 0x0016)                                                                            \
	X(SIDR_REQ, 0x0017)                                                                        \
	X(SIDR_REP, 0x0018)                                                                        \
	X(LAP, 0x0019)                                                                             \
	X(APR, 0x001a)

enum ddps_cm_attr {
#define DDPS_X(name, value) DDPS_CM_##name = (value),
	DDPS_CM_ATTRS(DDPS_X)
#undef DDPS_X
};

/* Transport service types of a REQ. */
enum ddps_cm_transport { DDPS_CM_RC, DDPS_CM_UC, DDPS_CM_RD, DDPS_CM_EXTENDED };

/* What a REJ rejects or an MRA acknowledges. */
enum ddps_cm_msg { DDPS_CM_MSG_REQ, DDPS_CM_MSG_REP, DDPS_CM_MSG_OTHER };

/* X(name, reason, text) of a REJ */
#define DDPS_CM_REASONS(X)                                                                         \
	X(NO_QP, 1, "no QP available")                                                             \
	X(NO_EEC, 2, "no EE context available")                                                    \
	X(NO_RESOURCES, 3, "no resources")                                                         \
	X(TIMEOUT, 4, "timeout")                                                                   \
	X(UNSUPPORTED, 5, "unsupported request")                                                   \
	X(COMM_ID, 6, "invalid communication ID")                                                  \
	X(COMM_INSTANCE, 7, "invalid communication instance")                                      \
	X(SERVICE_ID, 8, "invalid service ID")                                                     \
	X(TRANSPORT, 9, "invalid transport service type")                                          \
	X(STALE, 10, "stale connection")                                                           \
	X(NO_RDC, 11, "RDC does not exist")                                                        \
	X(GID, 12, "primary port GID invalid")                                                     \
	X(LID, 13, "primary LID invalid")                                                          \
	X(SL, 14, "primary SL invalid")                                                            \
	X(TCLASS, 15, "primary traffic class invalid")                                             \
	X(HOP_LIMIT, 16, "primary hop limit invalid")                                              \
	X(RATE, 17, "primary packet rate invalid")                                                 \
	X(ALT_GID, 18, "alternate port GID invalid")                                               \
	X(ALT_LID, 19, "alternate LID invalid")                                                    \
	X(ALT_SL, 20, "alternate SL invalid")                                                      \
	X(ALT_TCLASS, 21, "alternate traffic class invalid")                                       \
	X(ALT_HOP_LIMIT, 22, "alternate hop limit invalid")                                        \
	X(ALT_RATE, 23, "alternate packet rate invalid")                                           \
	X(PORT_CM_REDIRECT, 24, "port and CM redirection")                                         \
	X(PORT_REDIRECT, 25, "port redirection")                                                   \
	X(PATH_MTU, 26, "invalid path MTU")                                                        \
	X(RESP_RES, 27, "insufficient responder resources")                                        \
	X(CONSUMER, 28, "consumer reject")                                                         \
	X(RNR_RETRY, 29, "RNR retry count reject")                                                 \
	X(DUP_COMM_ID, 30, "duplicate local communication ID")                                     \
	X(CLASS_VERSION, 31, "invalid class version")                                              \
	X(FLOW_LABEL, 32, "primary flow label invalid")                                            \
	X(ALT_FLOW_LABEL, 33, "alternate flow label invalid")                                      \
	X(VENDOR_OPTION, 35, "vendor option not supported")

enum ddps_cm_reason {
#define DDPS_X(name, value, text) DDPS_CM_REJ_##name = (value),
	DDPS_CM_REASONS(DDPS_X)
#undef DDPS_X
};

struct ddps_cm_hdr {
	uint8_t base_version, mgmt_class, class_version, method; /* method: R bit included */
	uint16_t status, class_specific;
	uint64_t tid;
	uint16_t attr_id; /* enum ddps_cm_attr */
	uint32_t attr_mod;
};

/* "Local" and "remote" are from the point of view of the sender, in every message. */
struct ddps_cm_path {
	uint16_t local_lid, remote_lid; /* alternate path: local_lid 0 = there is none */
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label;
	uint8_t rate, traffic_class, hop_limit, sl, subnet_local;
	uint8_t ack_timeout; /* 5-bit time */
};

struct ddps_cm_req {
	uint32_t local_id;
	uint32_t vendor_id;
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey, qpn; /* qpn: the connected QP, not the UD QP */
	uint8_t resp_resources;
	uint32_t local_eecn;
	uint8_t init_depth;
	uint32_t remote_eecn;
	uint8_t remote_cm_timeout; /* 5-bit time in which the peer's CM answers */
	uint8_t transport;	   /* enum ddps_cm_transport */
	uint8_t flow_control;
	uint32_t starting_psn;	  /* for the first packet the receiver of the REQ sends */
	uint8_t local_cm_timeout; /* 5-bit time that the peer waits for our answer to REP */
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t path_mtu; /* 1 = 256 ... 5 = 4096 */
	uint8_t rdc_exists, rnr_retry;
	uint8_t max_cm_retries; /* resends after the first transmission */
	uint8_t srq, ext_transport;
	struct ddps_cm_path primary, alternate;
	uint8_t sap_supported;
	uint8_t private_data[92];
};

struct ddps_cm_mra {
	uint32_t local_id, remote_id;
	uint8_t msg;		 /* enum ddps_cm_msg; other = a LAP */
	uint8_t service_timeout; /* 5-bit time */
	uint8_t private_data[222];
};

struct ddps_cm_rej {
	uint32_t local_id; /* 0: the rejector has none */
	uint32_t remote_id;
	uint8_t msg;	  /* enum ddps_cm_msg */
	uint8_t info_len; /* octets of ari that count, 0..72 */
	uint16_t reason;  /* enum ddps_cm_reason, or one it does not name */
	uint8_t ari[DDPS_CM_ARI_LEN];
	uint8_t private_data[148];
};

struct ddps_cm_rep {
	uint32_t local_id, remote_id, qkey, qpn;
	uint32_t vendor_id, local_eecn, starting_psn;
	uint8_t resp_resources, init_depth;
	uint8_t target_ack_delay, failover, flow_control, rnr_retry, srq;
	uint64_t ca_guid;
	uint8_t private_data[196];
};

struct ddps_cm_rtu {
	uint32_t local_id, remote_id;
	uint8_t private_data[224];
};

struct ddps_cm_dreq {
	uint32_t local_id, remote_id;
	uint32_t remote_qpn; /* of the receiver */
	uint8_t private_data[220];
};

struct ddps_cm_drep {
	uint32_t local_id, remote_id;
	uint8_t private_data[224];
};

struct ddps_cm_sidr_req {
	uint32_t request_id;
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[216];
};

struct ddps_cm_sidr_rep {
	uint32_t request_id;
	uint8_t status, info_len;
	uint32_t vendor_id, qpn;
	uint64_t service_id;
	uint32_t qkey;
	uint8_t info[DDPS_CM_ARI_LEN];
	uint8_t private_data[136];
};

struct ddps_cm_lap {
	uint32_t local_id, remote_id, remote_qpn;
	uint8_t remote_cm_timeout;
	struct ddps_cm_path alternate;
	uint8_t private_data[168];
};

struct ddps_cm_apr {
	uint32_t local_id, remote_id;
	uint8_t info_len, status;
	uint8_t info[DDPS_CM_ARI_LEN];
	uint8_t private_data[148];
};

/* One message.  It owns its octets: nothing points elsewhere. */
struct ddps_cm_mad {
	struct ddps_cm_hdr hdr; /* hdr.attr_id says which member of u it is */
	union {
		struct ddps_cm_req req;
		struct ddps_cm_mra mra;
		struct ddps_cm_rej rej;
		struct ddps_cm_rep rep;
		struct ddps_cm_rtu rtu;
		struct ddps_cm_dreq dreq;
		struct ddps_cm_drep drep;
		struct ddps_cm_sidr_req sidr_req;
		struct ddps_cm_sidr_rep sidr_rep;
		struct ddps_cm_lap lap;
		struct ddps_cm_apr apr;
	} u;
};

/** ddps_cm_mad_init - an all-zero message with the header that CM messages have */
DDPS_API void ddps_cm_mad_init(struct ddps_cm_mad *mad, uint16_t attr, uint64_t tid);

/**
 * ddps_cm_mad_encode - write a message as 256 octets; reserved fields are zero
 *
 * The header goes out as given, so that a tester can send a wrong one.
 *
 * Return: 0, DDPS_E_INVAL (a value does not fit its field, or an information length is above 72) or
 * DDPS_E_UNSUPPORTED (an attribute ID that is not in enum ddps_cm_attr).
 */
DDPS_API int ddps_cm_mad_encode(uint8_t out[DDPS_CM_MAD_LEN], const struct ddps_cm_mad *mad);

/**
 * ddps_cm_mad_decode - read a message; reserved fields are ignored
 *
 * Unlike the other decoders it also fills @mad->hdr when it returns DDPS_E_REVISION or
 * DDPS_E_UNSUPPORTED, so that the message can be named.
 *
 * Return: 0, or
 *   DDPS_E_TRUNCATED	fewer than 256 octets
 *   DDPS_E_TOO_LONG	more than 256 octets
 *   DDPS_E_REVISION	base or class version is not that of CM
 *   DDPS_E_UNSUPPORTED	another class or method, or an unknown attribute ID
 *   DDPS_E_PROTOCOL	an information length above 72
 */
DDPS_API int ddps_cm_mad_decode(struct ddps_cm_mad *mad, const void *buf, size_t len);

/** ddps_cm_private_data - the private data of a message and its size, or NULL: unknown */
DDPS_API uint8_t *ddps_cm_private_data(struct ddps_cm_mad *mad, size_t *len);

/** ddps_cm_attr_name - "REQ"; "unknown" for an attribute that CM does not have */
DDPS_API const char *ddps_cm_attr_name(uint16_t attr);

/** ddps_cm_attr_parse - the inverse.  Return: the attribute ID or DDPS_E_INVAL. */
DDPS_API int ddps_cm_attr_parse(const char *name);

/** ddps_cm_reason_name - the text of a REJ reason; "unknown reason" if it has none */
DDPS_API const char *ddps_cm_reason_name(uint16_t reason);

/* ---- Fields by name ---- */

/*
 * A row describes one field.  Rows end with name NULL.  A row with an empty name is a further piece
 * of the field before it (vendor IDs lie scattered over their message).
 */
struct ddps_cm_field {
	const char *name;
	uint16_t bit;	 /* where it starts, counted from the MAD's first, highest bit */
	uint16_t width;	 /* in bits; above 64 it is a string of octets */
	uint16_t offset; /* of the member in struct ddps_cm_mad */
	uint8_t size;	 /* of the member; octet strings: 0 */
	uint8_t shift;	 /* of this piece in the member's value */
};

/** ddps_cm_hdr_fields - the rows of the common header */
DDPS_API const struct ddps_cm_field *ddps_cm_hdr_fields(void);

/** ddps_cm_fields - the rows of a message, or NULL: unknown attribute */
DDPS_API const struct ddps_cm_field *ddps_cm_fields(uint16_t attr);

/** ddps_cm_field_get - the value of a field; 0 for an octet string */
DDPS_API uint64_t ddps_cm_field_get(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f);

/** ddps_cm_field_set - Return: 0, or DDPS_E_INVAL: too large, or an octet string. */
DDPS_API int ddps_cm_field_set(struct ddps_cm_mad *mad, const struct ddps_cm_field *f,
			       uint64_t value);

/** ddps_cm_field_octets - an octet string of f->width / 8 octets, or NULL: a number */
DDPS_API uint8_t *ddps_cm_field_octets(struct ddps_cm_mad *mad, const struct ddps_cm_field *f);

/* ---- 5-bit times ---- */

#define DDPS_CM_TIME_MAX 31

/** ddps_cm_time_ns - 4.096 us x 2^@t; values above 31 count as 31 */
DDPS_API uint64_t ddps_cm_time_ns(unsigned t);

/** ddps_cm_time_code - the smallest 5-bit time that is not below @ns; 31 if none is */
DDPS_API uint8_t ddps_cm_time_code(uint64_t ns);

/**
 * ddps_cm_ack_timeout - the local ACK timeout to ask for, as Linux computes it
 * @life:	5-bit packet lifetime of the path
 * @delay:	5-bit ACK delay of the channel adapter
 */
DDPS_API uint8_t ddps_cm_ack_timeout(unsigned life, unsigned delay);

#ifdef __cplusplus
}
#endif
#endif
