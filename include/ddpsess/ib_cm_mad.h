/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPSESS_IB_CM_MAD_H
#define DDPSESS_IB_CM_MAD_H
/*
 * InfiniBand communication management (CM) messages (IBA volume 1, chapter 12).  Each message is a
 * struct with every field by name.  Functions here turn it into the 256 octets of a management
 * datagram (MAD) and back.  A table of the fields lets a tool read and set them by name.
 *
 * Part of libddpsess-ipoib.  Programs include <ddpsess/ipoib_cm.h>, which includes this header.
 *
 * Every function here is pure, as <ddpsess/ipoib_cm.h> says.  So each is thread safe and none
 * blocks.
 *
 * In every message, "local" and "remote" are from the point of view of its sender.  local_id is the
 * communication ID that the sender has chosen, remote_id the one that the receiver has chosen.
 * private_data is for the consumer at the other end.  The wire carries no length of it: all octets
 * are sent, and those without a meaning are 0.
 *
 * Numbers are in host byte order.  Strings of octets, such as GIDs, are as on the wire.  A field
 * that is narrower than its member has a range; ddps_cm_mad_encode() refuses values beyond it.
 * "5-bit time" means a code from 0 to 31 for 4.096 us x 2^code; see ddps_cm_time_ns().
 */
#include <ddpsess/err_codes.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDPS_CM_MAD_LEN	     256	 /* octets of every MAD, header included */
#define DDPS_CM_HDR_LEN	     24		 /* octets of the common header */
#define DDPS_CM_CLASS	     0x07	 /* management class of CM */
#define DDPS_CM_BASE_VERSION 1		 /* version of the MAD format */
#define DDPS_CM_VERSION	     2		 /* version of the CM class */
#define DDPS_CM_METHOD	     0x03	 /* Send: requests and replies alike */
#define DDPS_CM_QKEY	     0x80010000u /* Q_Key of QP 1, to which CM messages go */
#define DDPS_CM_ARI_LEN	     72		 /* most octets of additional information */

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

/* Attribute IDs: which message a MAD is (IBA volume 1, 12.6, 12.8 and 12.11). */
enum ddps_cm_attr {
#define DDPS_X(name, value) DDPS_CM_##name = (value),
	DDPS_CM_ATTRS(DDPS_X)
#undef DDPS_X
};

/*
 * Transport service types of a REQ: reliable connection, unreliable connection, reliable datagram.
 * EXTENDED: the type is in ext_transport.
 */
enum ddps_cm_transport { DDPS_CM_RC, DDPS_CM_UC, DDPS_CM_RD, DDPS_CM_EXTENDED };

/* Which message a REJ rejects or an MRA acknowledges. */
enum ddps_cm_msg { DDPS_CM_MSG_REQ, DDPS_CM_MSG_REP, DDPS_CM_MSG_OTHER };

/* X(name, reason, text): one list yields the reasons of a REJ and their texts. */
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

/* Why a REJ rejects (IBA volume 1, 12.6.7).  A peer may send other values. */
enum ddps_cm_reason {
#define DDPS_X(name, value, text) DDPS_CM_REJ_##name = (value),
	DDPS_CM_REASONS(DDPS_X)
#undef DDPS_X
};

/* ---- Messages (IBA volume 1, tables 106 to 120) ---- */

/* The common header of MADs (IBA volume 1, chapter 13).  ddps_cm_mad_init() sets it. */
struct ddps_cm_hdr {
	/* DDPS_CM_BASE_VERSION, DDPS_CM_CLASS, DDPS_CM_VERSION and DDPS_CM_METHOD.  The R bit,
	 * 0x80, is part of method. */
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t status, class_specific; /* 0 in CM messages */
	uint64_t tid;			 /* transaction ID: an answer has that of its request */
	uint16_t attr_id;		 /* enum ddps_cm_attr */
	uint32_t attr_mod;		 /* 0 in CM messages */
};

/* A path of a REQ or a LAP. */
struct ddps_cm_path {
	/* An alternate path with local_lid 0 means that there is none. */
	uint16_t local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint32_t flow_label; /* 20 bits */
	/*
	 * rate: code of the packet rate, 6 bits: 2 = 2.5 Gbit/s, 3 = 10, 7 = 40, 16 = 100, ...
	 * traffic_class and hop_limit: of the global route header (GRH).
	 * sl: service level, 0..15.
	 * subnet_local: 1: both ends are in one subnet; 0: a router is between them.
	 */
	uint8_t rate, traffic_class, hop_limit, sl, subnet_local;
	uint8_t ack_timeout; /* local ACK timeout for the receiver's queue pair; 5-bit time */
};

/* Asks for a connection (table 106).  Its sender is the active side. */
struct ddps_cm_req {
	uint32_t local_id;
	uint32_t vendor_id;  /* 24 bits */
	uint64_t service_id; /* what the passive side listens on */
	uint64_t ca_guid;    /* node GUID of the sender's channel adapter; not a port GUID */
	/* qkey: RD only, else 0.  qpn: 24 bits: the connected QP, not the UD QP. */
	uint32_t qkey, qpn;
	uint8_t resp_resources;	   /* most RDMA Reads and atomics of the peer that are served */
	uint32_t local_eecn;	   /* 24 bits; RD only, else 0 */
	uint8_t init_depth;	   /* most RDMA Reads and atomics that the sender has outstanding */
	uint32_t remote_eecn;	   /* 24 bits; RD only, else 0 */
	uint8_t remote_cm_timeout; /* 5-bit time in which the peer's CM answers */
	uint8_t transport;	   /* enum ddps_cm_transport */
	uint8_t flow_control;	   /* 1: end-to-end flow control; else 0 */
	/* 24 bits: for the first packet that the receiver of the REQ sends on the connection */
	uint32_t starting_psn;
	uint8_t local_cm_timeout; /* 5-bit time that the peer waits for the answer to its REP */
	uint8_t retry_count;	  /* RC: transport retries of the receiver's QP, 0..7 */
	uint16_t pkey;		  /* of the partition; bit 15: a full member */
	uint8_t path_mtu;	  /* code, in octets: 1 = 256 ... 5 = 4096; 4 bits */
	/* rdc_exists: 0 or 1; RD only.  rnr_retry: retries of the receiver's QP after an RNR NAK,
	 * 0..6; 7: without limit. */
	uint8_t rdc_exists, rnr_retry;
	uint8_t max_cm_retries; /* resends after the first transmission, 0..15 */
	/* srq: 1: the QP has a shared receive queue; else 0.  ext_transport: 0..7, counts only with
	 * DDPS_CM_EXTENDED; 1 = XRC. */
	uint8_t srq, ext_transport;
	struct ddps_cm_path primary, alternate;
	uint8_t sap_supported; /* 0 or 1 */
	uint8_t private_data[92];
};

/* Says that the answer to a message takes longer (table 107). */
struct ddps_cm_mra {
	uint32_t local_id, remote_id;
	uint8_t msg;		 /* enum ddps_cm_msg; DDPS_CM_MSG_OTHER: a LAP */
	uint8_t service_timeout; /* how long the answer may take from now on, 5-bit time */
	uint8_t private_data[222];
};

/* Refuses or takes back a REQ or REP (table 108). */
struct ddps_cm_rej {
	uint32_t local_id; /* 0: the rejector has none */
	uint32_t remote_id;
	uint8_t msg;	  /* enum ddps_cm_msg; DDPS_CM_MSG_OTHER: no particular message */
	uint8_t info_len; /* octets of ari that count, 0..72 */
	uint16_t reason;  /* enum ddps_cm_reason, or one that it does not name */
	uint8_t ari[DDPS_CM_ARI_LEN]; /* additional reject information; depends on the reason */
	uint8_t private_data[148];
};

/* The passive side's answer to a REQ (table 110).  Members as in struct ddps_cm_req. */
struct ddps_cm_rep {
	uint32_t local_id, remote_id, qkey, qpn;
	uint32_t vendor_id, local_eecn, starting_psn;
	uint8_t resp_resources, init_depth;
	/* target_ack_delay: of the sender's channel adapter; 5-bit time.  failover: whether the
	 * alternate path is accepted, 0..3; 0: it is. */
	uint8_t target_ack_delay, failover, flow_control, rnr_retry, srq;
	uint64_t ca_guid;
	uint8_t private_data[196];
};

/* The active side's answer to a REP: the connection is ready to use (table 111). */
struct ddps_cm_rtu {
	uint32_t local_id, remote_id;
	uint8_t private_data[224];
};

/* Asks to end a connection (table 112). */
struct ddps_cm_dreq {
	uint32_t local_id, remote_id;
	uint32_t remote_qpn; /* 24 bits: the connected QP of the receiver */
	uint8_t private_data[220];
};

/* The answer to a DREQ (table 113). */
struct ddps_cm_drep {
	uint32_t local_id, remote_id;
	uint8_t private_data[224];
};

/* Asks for the queue pair of a datagram service (table 119). */
struct ddps_cm_sidr_req {
	uint32_t request_id; /* chosen by the sender; the answer has it */
	uint16_t pkey;
	uint64_t service_id;
	uint8_t private_data[216];
};

/* The answer to a SIDR_REQ (table 120). */
struct ddps_cm_sidr_rep {
	uint32_t request_id;
	/* status: 0: qpn and qkey are valid; else why not.  info_len: octets of info that count,
	 * 0..72. */
	uint8_t status, info_len;
	uint32_t vendor_id, qpn; /* 24 bits each; qpn: of the service */
	uint64_t service_id;
	uint32_t qkey; /* of the service */
	uint8_t info[DDPS_CM_ARI_LEN];
	uint8_t private_data[136];
};

/* Asks for another alternate path (table 115). */
struct ddps_cm_lap {
	uint32_t local_id, remote_id, remote_qpn; /* remote_qpn: as in a DREQ */
	uint8_t remote_cm_timeout;		  /* 5-bit time in which the peer's CM answers */
	struct ddps_cm_path alternate;
	uint8_t private_data[168];
};

/* The answer to a LAP (table 116). */
struct ddps_cm_apr {
	uint32_t local_id, remote_id;
	/* info_len: octets of info that count, 0..72.  status: 0: the path is loaded; else why
	 * not. */
	uint8_t info_len, status;
	uint8_t info[DDPS_CM_ARI_LEN];
	uint8_t private_data[148];
};

/* One message.  It owns its octets: nothing points elsewhere. */
struct ddps_cm_mad {
	struct ddps_cm_hdr hdr; /* hdr.attr_id says which member of u the message is */
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

/* ---- Octets ---- */

/**
 * ddps_cm_mad_init - make an all-zero message with the header that CM messages have
 * @mad:	receives it
 * @attr:	enum ddps_cm_attr; not checked
 * @tid:	transaction ID
 */
DDPS_API void ddps_cm_mad_init(struct ddps_cm_mad *mad, uint16_t attr, uint64_t tid);

/**
 * ddps_cm_mad_encode - write a message as 256 octets
 * @out:	receives the octets; reserved fields are 0
 * @mad:	the message
 *
 * The header goes out as given, so that a tester can send a wrong one.
 *
 * Return: 0, or
 * - DDPS_E_INVAL: a value does not fit its field, or an information length is above 72
 * - DDPS_E_UNSUPPORTED: the attribute ID is not in enum ddps_cm_attr
 */
DDPS_API int ddps_cm_mad_encode(uint8_t out[DDPS_CM_MAD_LEN], const struct ddps_cm_mad *mad);

/**
 * ddps_cm_mad_decode - read a message; reserved fields are ignored
 * @mad:	receives the message
 * @buf:	one MAD
 * @len:	octets at @buf
 *
 * On failure @mad is unchanged, with one exception.  With DDPS_E_REVISION and DDPS_E_UNSUPPORTED
 * @mad->hdr is filled in, so that the message can be named.
 *
 * Return: 0, or
 * - DDPS_E_TRUNCATED: fewer than 256 octets
 * - DDPS_E_TOO_LONG: more than 256 octets
 * - DDPS_E_REVISION: base version or class version is not that of CM
 * - DDPS_E_UNSUPPORTED: another class or method, or an unknown attribute ID
 * - DDPS_E_PROTOCOL: an information length is above 72
 */
DDPS_API int ddps_cm_mad_decode(struct ddps_cm_mad *mad, const void *buf, size_t len);

/**
 * ddps_cm_attr_name - the name of a message
 * @attr:	attribute ID
 *
 * Return: a constant string such as "REQ"; "unknown" for an attribute that CM does not have.
 */
DDPS_API const char *ddps_cm_attr_name(uint16_t attr);

/**
 * ddps_cm_attr_parse - the message that has a name
 * @name:	as ddps_cm_attr_name() gives it, in upper case
 *
 * Return: the attribute ID, or DDPS_E_INVAL: no message has this name.
 */
DDPS_API int ddps_cm_attr_parse(const char *name);

/**
 * ddps_cm_reason_name - the text of a REJ reason
 * @reason:	enum ddps_cm_reason, or any other value
 *
 * Return: a constant string; "unknown reason" if the value has none.
 */
DDPS_API const char *ddps_cm_reason_name(uint16_t reason);

/* ---- Fields by name ---- */

/*
 * A row describes one field of a message.  The last row of a table has name NULL.  A row with an
 * empty name is a further piece of the field before it: vendor IDs are scattered over their
 * message.
 */
struct ddps_cm_field {
	const char *name;
	uint16_t bit;	 /* where the field starts, counted from the MAD's first, highest bit */
	uint16_t width;	 /* in bits; above 64 the field is a string of octets */
	uint16_t offset; /* of the member in struct ddps_cm_mad, in octets */
	uint8_t size;	 /* of the member, in octets; octet strings: 0 */
	uint8_t shift;	 /* how far left this piece is in the member's value, in bits */
};

/** ddps_cm_hdr_fields - Return: the rows of the common header; constant. */
DDPS_API const struct ddps_cm_field *ddps_cm_hdr_fields(void);

/**
 * ddps_cm_fields - the rows of a message, without those of the header
 * @attr:	attribute ID
 *
 * Return: a constant table, or NULL: the attribute ID is unknown.
 */
DDPS_API const struct ddps_cm_field *ddps_cm_fields(uint16_t attr);

/**
 * ddps_cm_field_get - the value of a field
 * @mad:	message
 * @f:		row of the header or of this message
 *
 * Return: its value, in host byte order; 0 for an octet string.
 */
DDPS_API uint64_t ddps_cm_field_get(const struct ddps_cm_mad *mad, const struct ddps_cm_field *f);

/**
 * ddps_cm_field_set - set a field that is a number
 * @mad:	message
 * @f:		row of the header or of this message, with a name
 * @value:	in host byte order
 *
 * Return: 0, or DDPS_E_INVAL: @value is too large for the field, or the field is an octet string.
 */
DDPS_API int ddps_cm_field_set(struct ddps_cm_mad *mad, const struct ddps_cm_field *f,
			       uint64_t value);

/**
 * ddps_cm_field_octets - where an octet string is
 * @mad:	message
 * @f:		row of this message
 *
 * Return: its f->width / 8 octets in @mad, or NULL: the field is a number.
 */
DDPS_API uint8_t *ddps_cm_field_octets(struct ddps_cm_mad *mad, const struct ddps_cm_field *f);

/* ---- 5-bit times ---- */

#define DDPS_CM_TIME_MAX 31 /* the largest code: 8796 s */

/**
 * ddps_cm_time_ns - what a 5-bit time means
 * @t:	code; values above 31 count as 31
 *
 * Return: 4096 x 2^@t nanoseconds.
 */
DDPS_API uint64_t ddps_cm_time_ns(unsigned t);

/**
 * ddps_cm_ack_timeout - the local ACK timeout for a path
 * @life:	packet lifetime of the path, 5-bit time
 * @delay:	ACK delay of the channel adapter at the other end, 5-bit time
 *
 * It covers the way there and back, and the delay.  It is computed as Linux does.
 *
 * Return: 5-bit time.
 */
DDPS_API uint8_t ddps_cm_ack_timeout(unsigned life, unsigned delay);

#ifdef __cplusplus
}
#endif
#endif
