/* SPDX-License-Identifier: BSD-2-Clause */
/* A pre-shared key for the tests over TLS.  The program that runs them makes it; each test is a process of
 * its own, which finds it by a variable. */
#include "verbs/vt.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_OF_KEYS "DDPSESS_TEST_PSK"

static char file[] = "/tmp/ddpsess-vt-XXXXXX";
static pid_t maker;

__attribute__((constructor)) static void make_vt_key(void)
{
	static const char key[] = "both:000102030405060708090a0b0c0d0e0f\n";
	int fd;

	if (getenv(FILE_OF_KEYS))
		return;
	fd = mkostemp(file, O_CLOEXEC);
	if (fd < 0 || write(fd, key, sizeof key - 1) != sizeof key - 1)
		abort();
	close(fd);
	maker = getpid();
	setenv(FILE_OF_KEYS, file, 1);
}

__attribute__((destructor)) static void remove_vt_key(void)
{
	if (maker == getpid())
		unlink(file);
}

/*
 * LeakSanitizer asks at the end of a process.  The context of the drop-in is there until then, and keys are
 * where LeakSanitizer does not look (src/secure/vault.c), so that all that they lead to would be leaks.
 */
int __lsan_is_turned_off(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
	const char *wire = getenv("DDPSESS_TRANSPORT");

	return wire && strcmp(wire, "tcp") != 0 && strcmp(wire, "sctp") != 0;
}

void vt_over_tls(void)
{
	setenv("DDPSESS_TRANSPORT", "tls", 1);
	setenv("DDPSESS_TLS_PSK", getenv(FILE_OF_KEYS), 1);
}
