/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SESSCTL_FILE_H
#define SESSCTL_FILE_H
/* What both ends of a transfer do with files. */
#include "xfer/proto.h"
#include <sys/types.h>

/* Fill @buf; short only at the end of the file.  Return: octets, or -1 with errno. */
ssize_t file_read(int fd, uint8_t *buf, size_t len, uint64_t off);

/* The window of a transfer: no larger and no more slots than the file needs. */
uint32_t file_slot_len(uint64_t size);
uint8_t file_nslots(uint64_t size);

#endif
