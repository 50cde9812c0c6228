/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DDPS_VIEW_PATH_H
#define DDPS_VIEW_PATH_H
/* Which paths lead into the view of the device's folders, and back. */
#include <stddef.h>

/*
 * Where @path leads: into @root if it is below /sys/class/infiniband, /sys/class/infiniband_verbs
 * or /dev/infiniband, however many slashes and dots it has; else @path itself.  Folders above it
 * ("..") are taken by name.  @buf: of @len octets; a path too long for it is left alone.
 */
const char *view_into(const char *root, const char *path, char *buf, size_t len);

/* Take @root off @path, in place, if it is there. */
void view_out_of(const char *root, char *path);

#endif
