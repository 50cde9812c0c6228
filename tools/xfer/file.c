/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ends of a transfer do with files. */
#include "xfer/file.h"
#include <errno.h>
#include <unistd.h>

ssize_t file_read(int fd, uint8_t *buf, size_t len, uint64_t off)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, buf + got, len - got, (off_t)(off + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

uint32_t file_slot_len(uint64_t size)
{
	return size < SLOT_LEN_MAX ? (uint32_t)size : SLOT_LEN_MAX;
}

uint8_t file_nslots(uint64_t size)
{
	uint64_t n = size / SLOT_LEN_MAX + (size % SLOT_LEN_MAX ? 1 : 0);

	return (uint8_t)(n < SLOTS_MAX ? n : SLOTS_MAX);
}
