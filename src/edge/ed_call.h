/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_EDGE_ED_CALL_H
#define DDPS_EDGE_ED_CALL_H
/* How the calls of libibverbs ask: what each is about, and whether it is made. */
#include "edge/ed.h"

#define SUBJECT(...) const struct ed_subject s = { .opcode = VF_NOT_SAID, __VA_ARGS__ }
#define ASK(name)    (ed_on() ? ed_call(VF_##name, &s) : 0)

/* Memory of the device, within its limits (ed_memory.c). */
struct ibv_mr *ed_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t off, size_t len,
			    unsigned access);

#endif
