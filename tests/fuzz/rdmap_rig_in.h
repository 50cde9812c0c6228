/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FUZZ_RDMAP_RIG_IN_H
#define FUZZ_RDMAP_RIG_IN_H
/* Between rdmap_rig.c and rdmap_memory.c. */
#include "rdmap_rig.h"

#define ALL_RIGHTS  (DDPS_LOCAL_WRITE | DDPS_REMOTE_WRITE | DDPS_REMOTE_READ)
#define ALL_FLUSHES (DDPS_FLUSHABLE | DDPS_PERSISTENT)

/* The upcall. */
int rig_persist(void *user, uint8_t *at, size_t len);
/* One request more, or with @by -1 one less, may have the octets of its pieces written. */
void rig_cover(struct rig *g, const struct rig_work *w, int by);
/* Whether a window gives the peer @right to [@at, @at + @len) of @m: one that is bound to it, and a
 * bind asked for as much. */
bool rig_by_window(const struct rig *g, const struct rig_region *m, size_t at, size_t len,
		   unsigned right);

#endif
