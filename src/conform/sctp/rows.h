/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_CONFORM_SCTP_ROWS_H
#define DDPS_CONFORM_SCTP_ROWS_H
/* Rows of the tables of cases: for a responder, for an initiator, for a target in either role. */

#define R(point, run, ids, rule)                                                                   \
	{                                                                                          \
		"assoc-" point, ids, rule, CF_SCTP, CF_RESPONDER, false, run                       \
	}
#define I(point, run, ids, rule)                                                                   \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP, CF_INITIATOR, false, run                     \
	}
/* Not inside DTLS, where addresses and UDP ports say nothing. */
#define CLEAR(point, run, ids, rule)                                                               \
	{ "assoc-" point, ids, rule, CF_SCTP | CF_CLEAR, CF_RESPONDER, false, run },               \
	{                                                                                          \
		"assoc-i-" point, ids, rule, CF_SCTP | CF_CLEAR, CF_INITIATOR, false, run          \
	}
#define BOTH(point, run, ids, rule) R(point, run, ids, rule), I(point, run, ids, rule)

#endif
