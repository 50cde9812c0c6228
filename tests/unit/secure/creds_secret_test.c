/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys in memory: no core file and no child of fork has them. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(creds_secret, .init = creds_setup, .fini = creds_teardown);

static bool has_flag(const void *at, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool inside = false, found = false;

	while (f && fgets(line, sizeof line, f)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from <= (unsigned long)at && (unsigned long)at < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, flag);
	}
	if (f)
		fclose(f);
	return found;
}

/* Whether the @len octets at @what are anywhere in memory that a core file would have. */
static bool is_dumped(const uint8_t *what, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long from = 0, to = 0;
	bool found = false;

	while (f && fgets(line, sizeof line, f)) {
		unsigned long at, end_at;
		char may[5] = "";

		if (sscanf(line, "%lx-%lx %4s", &at, &end_at, may) == 3) {
			from = may[0] == 'r' && may[1] == 'w' ? at : end_at;
			to = end_at;
		} else if (!strncmp(line, "VmFlags:", 8) && !strstr(line, " dd") && from < to)
			for (const uint8_t *p = (const uint8_t *)from, *end = (const uint8_t *)to;
			     !found && (p = memmem(p, (size_t)(end - p), what, len)); p++)
				found = p != what;
	}
	if (f)
		fclose(f);
	return found;
}

/* In a child, whose memory is gone then: a site, and the number of its key in a file. */
static void leave_site_of_child(void)
{
	struct site s;
	gnutls_ecc_curve_t curve;
	gnutls_datum_t x, y, k;
	const int fd = open(path_of("scalar"), O_CREAT | O_WRONLY, 0600);

	make_site(&s);
	cr_assert_eq(gnutls_x509_privkey_export_ecc_raw(s.host.key, &curve, &x, &y, &k), 0);
	_exit(write(fd, k.data + k.size - 32, 32) != 32);
}

Test(creds_secret, a_private_key_is_in_no_core_file)
{
	struct ddps_secure_attr attr;
	struct ddps_creds *c;
	uint8_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status, fd;
	pid_t pid;

#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("a sanitizer keeps memory that was freed, and lets nobody look at it");
#endif
	pid = fork();
	cr_assert(own != MAP_FAILED && !madvise(own, 4096, MADV_DONTDUMP));
	if (!pid)
		leave_site_of_child();
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	fd = open(path_of("scalar"), O_RDONLY);
	cr_assert_eq(read(fd, own, 32), 32);
	close(fd);
	for (size_t i = 0; i < 32; i++) /* as GnuTLS's numbers lie in memory */
		own[64 + i] = own[31 - i];
	ddps_secure_attr_init(&attr);
	attr.cert = path_of("host.pem");
	attr.key = path_of("host.key");
	attr.ca = path_of("ca.pem");
	c = open_creds(&attr);
	cr_expect_not(is_dumped(own, 24), "as octets");
	cr_expect_not(is_dumped(own + 64, 24), "as a number");
	ddps_creds_close(c);
}

/* What it has of its parent's keys is wiped. */
static void use_as_child(struct ddps_creds *c)
{
	struct ddps_verdict news;
	struct ddps_creds_set *set = ddps_creds_use(c, 1, NOW, &news);
	const bool good = set->psks.psk[0].key[1] == 0x11 && ddps_set_intact(set) &&
			  strstr(news.text, "fork");

	ddps_creds_release(set);
	unlink(path_of("psk"));
	set = ddps_creds_use(c, 2000, NOW, &news); /* no reason to lose what it has */
	_exit(!good || !ddps_set_intact(set) || !news.code);
}

static void lose_files_as_child(struct ddps_creds *c)
{
	struct ddps_verdict news;

	unlink(path_of("psk"));
	_exit(ddps_set_intact(ddps_creds_use(c, 1, NOW, &news)) || !news.code ||
	      !strstr(news.text, "fork"));
}

Test(creds_secret, a_child_of_fork_reads_the_files_anew)
{
	void (*const child[])(struct ddps_creds * c) = { use_as_child, lose_files_as_child };
	struct site s;
	struct ddps_creds *c;
	int status;
	pid_t pid;

	make_site(&s);
	for (int i = 0; i < 2; i++) {
		s.attr.psk = put_text("psk", "node:" HEX16 "\n", 0600);
		c = open_creds(&s.attr);
		ddps_creds_release(use_creds(c, 0));
		pid = fork();
		if (!pid)
			child[i](c);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, 0, "%d", i);
		ddps_creds_close(c);
	}
}

static atomic_bool reloads;

static void *reload_always(void *c)
{
	struct ddps_verdict why;

	while (reloads)
		ddps_creds_reload(c, NOW, &why);
	return NULL;
}

/* The thread of the parent that had the lock is not in the child. */
Test(creds_secret, a_child_waits_for_no_thread_of_its_parent, .timeout = 60)
{
	struct ddps_verdict why;
	struct site s;
	struct ddps_creds *c;
	pthread_t thread;
	int status;

#ifdef __SANITIZE_ADDRESS__
	cr_skip("the sanitizer's own lock is held in the child, too");
#endif
	make_site(&s);
	c = open_creds(&s.attr);
	reloads = true;
	cr_assert_eq(pthread_create(&thread, NULL, reload_always, c), 0);
	for (int i = 0; i < 40; i++) {
		const pid_t pid = fork();

		if (!pid) {
			alarm(20);
			_exit(ddps_creds_reload(c, NOW, &why) != 0);
		}
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0, "fork %d: %d", i, status);
	}
	reloads = false;
	pthread_join(thread, NULL);
	ddps_creds_close(c);
}

Test(creds_secret, no_core_file_and_no_child_has_the_keys)
{
	struct ddps_secure_attr attr;
	struct ddps_creds *c;
	struct ddps_creds_set *set;
	int status;
	pid_t pid;

	ddps_secure_attr_init(&attr);
	attr.psk = put_text("psk", "node:" HEX16 "\n", 0600);
	c = open_creds(&attr);
	set = use_creds(c, 0);
	cr_assert_eq(set->psks.n, 1u);
	cr_expect_eq(set->psks.psk[0].key[1], 0x11);
	cr_expect(has_flag(set->psks.psk[0].key, " dd"), "MADV_DONTDUMP");
	cr_expect(has_flag(set->psks.psk[0].key, " wf"), "MADV_WIPEONFORK");
	pid = fork();
	if (!pid)
		_exit(set->psks.psk[0].key[1] || ddps_vault_intact(&set->psks.vault));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	ddps_creds_release(set);
	ddps_creds_close(c);
}
