/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_RUN_VIEW_H
#define SESSCTL_RUN_VIEW_H
/* sessctl run: the folders in which programs look for RDMA devices, as the drop-in has them. */
#include "sessctl/run/run.h"
#include <limits.h>

/*
 * Write what the devices of the drop-in @library (a path) say of themselves into a folder of the
 * user's own, as sysfs has it: ROOT/sys/class/infiniband, ROOT/dev/infiniband and so on.  The same
 * devices have the same folder in every run.  The environment is set as the program will have it.
 * @root: filled.  Return: 0, or -1 with @f filled; -2: there is no device, which the drop-in says.
 */
int run_view_write(const char *library, char root[PATH_MAX], struct run_fault *f);

#endif
