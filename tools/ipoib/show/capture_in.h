/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_CAPTURE_IN_H
#define SESSCTL_CAPTURE_IN_H
/* Captures inside: what the records of capture.c and capture_frame.c share. */
#include "cli/octets.h"

#define ERF_LEN	    16
#define CAPTURE_ERF (16 + ERF_LEN) /* before the InfiniBand packet */

#define LRH_LEN	 8
#define GRH_LEN	 40
#define BTH_LEN	 12
#define DETH_LEN 8
#define LNH_BTH	 2
#define LNH_GRH	 3
#define UD_SEND	 0x64
#define ICRC_LEN 4
#define VCRC_LEN 2

/* The headers of a record, for an InfiniBand packet of @len octets. */
void capture_put_record(struct octets *w, uint64_t time_ns, unsigned len);

#endif
