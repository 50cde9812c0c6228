/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_TEST_VT_FAULT_H
#define DDPS_TEST_VT_FAULT_H
/* Tests of the edge: rules for this process, and what it did by them. */
#include "verbs/vt.h"

/* These are the rules; before the first call of the drop-in. */
void vf_use(const char *rules);
/* This is the profile; the same. */
void vp_use(const char *profile);
/* The trace so far. */
const char *vf_traced(void);
/* This process may not lock as much memory as it likes, as most may not. */
void vf_may_not_pin(void);
/* vt_init, vt_up with these rules. */
void vf_up(struct vt *v, const char *rules);

#endif
