/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the drop-in and the program, and says beforehand what the loader would pass over. */
#include "sessctl/run/run.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef SESSCTL_LIBDIR
#define SESSCTL_LIBDIR "/usr/local/lib"
#endif

#define PHNUM_SANE 256 /* program headers of a file that anybody would run */

enum elf_kind { ELF_NONE, ELF_FOREIGN, ELF_STATIC, ELF_DYNAMIC, ELF_LIBRARY };

/* A file without an interpreter never meets the loader, or is a library. */
static enum elf_kind kind_of_headers(int fd, const Elf64_Ehdr *h)
{
	bool interp = false, dynamic = false;
	Elf64_Phdr p;

	if (h->e_phnum > PHNUM_SANE || h->e_phentsize != sizeof p || h->e_phoff > INT32_MAX)
		return ELF_FOREIGN;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		off_t at = (off_t)(h->e_phoff + i * sizeof p);

		if (pread(fd, &p, sizeof p, at) != (ssize_t)sizeof p)
			return ELF_FOREIGN;
		interp |= p.p_type == PT_INTERP;
		dynamic |= p.p_type == PT_DYNAMIC;
	}
	return interp ? ELF_DYNAMIC : dynamic && h->e_type == ET_DYN ? ELF_LIBRARY : ELF_STATIC;
}

/* This machine is the one that runs sessctl: its own header is the pattern. */
static enum elf_kind get_elf_kind(const char *path)
{
	Elf64_Ehdr own = { 0 }, h = { 0 };
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;
	enum elf_kind kind = ELF_NONE;

	if (self >= 0) {
		if (pread(self, &own, sizeof own, 0) != (ssize_t)sizeof own)
			own.e_machine = EM_NONE;
		close(self);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ELF_NONE;
	if (pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
	    !memcmp(h.e_ident, ELFMAG, SELFMAG)) {
		kind = ELF_FOREIGN;
		if (h.e_ident[EI_CLASS] == ELFCLASS64 && h.e_machine == own.e_machine)
			kind = kind_of_headers(fd, &h);
	}
	close(fd);
	return kind;
}

static int set_run_fault(struct run_fault *f, int status, const char *path, const char *why,
			 const char *try)
{
	snprintf(f->why, sizeof f->why, "'%.400s' %s", path, why);
	snprintf(f->try, sizeof f->try, "%s", try);
	return status;
}

/* Whether the loader would ignore the environment: rights come with the file. */
static bool privileged(const char *path, const struct stat *st)
{
	return ((st->st_mode & S_ISUID) && st->st_uid != getuid()) ||
	       ((st->st_mode & S_ISGID) && st->st_gid != getgid()) ||
	       (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

static int check_program(const char *path, struct run_fault *f)
{
	char why[100];
	struct stat st;

	if (stat(path, &st)) {
		int status = errno == ENOENT ? RUN_NOT_FOUND : RUN_CANNOT;

		snprintf(why, sizeof why, "cannot be run: %s", strerror(errno));
		return set_run_fault(f, status, path, why,
				     "check the name, or give the program's whole path");
	}
	if (!S_ISREG(st.st_mode) || access(path, X_OK))
		return set_run_fault(f, RUN_CANNOT, path, "is not a file that you may execute",
				     "chmod +x, or name a program");
	if (privileged(path, &st))
		return set_run_fault(
			f, RUN_CANNOT, path,
			"is setuid, setgid or has file capabilities: it ignores preloaded "
			"libraries",
			"run a copy without these rights; none is needed here");
	switch (get_elf_kind(path)) {
	case ELF_STATIC:
		return set_run_fault(f, RUN_CANNOT, path,
				     "is statically linked: no library can be put in its way",
				     "link it with shared libibverbs and librdmacm");
	case ELF_FOREIGN:
		return set_run_fault(f, RUN_CANNOT, path,
				     "is for another architecture than sessctl",
				     "use a build for this machine");
	case ELF_LIBRARY:
		return set_run_fault(f, RUN_CANNOT, path, "is a library or statically linked",
				     "name a dynamically linked program");
	case ELF_NONE: /* a script: its interpreter inherits the environment */
	case ELF_DYNAMIC:
		break;
	}
	return 0;
}

int run_find_program(const char *name, char *path, size_t len, struct run_fault *f)
{
	const char *dirs = getenv("PATH");

	if (strchr(name, '/')) {
		snprintf(path, len, "%s", name);
		return check_program(path, f);
	}
	for (const char *d = dirs ? dirs : "/usr/bin:/bin"; *name && d;) {
		size_t n = strcspn(d, ":");

		if ((size_t)snprintf(path, len, "%.*s/%s", n ? (int)n : 1, n ? d : ".", name) <
			    len &&
		    !access(path, X_OK))
			return check_program(path, f);
		d = d[n] ? d + n + 1 : NULL;
	}
	return set_run_fault(f, RUN_NOT_FOUND, name, "is no program in PATH",
			     "check the name, install it, or give its whole path");
}

int run_find_library(const char *file, char *path, size_t len, struct run_fault *f)
{
	char self[PATH_MAX] = "", *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	const struct {
		const char *base, *sub;
	} place[] = { { self, "" }, { self, "/../lib" }, { SESSCTL_LIBDIR, "" } };

	slash = n > 0 ? strrchr(self, '/') : NULL;
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
		int wrote = snprintf(path, len, "%s%s/%s", place[i].base, place[i].sub, file);

		if (wrote < 0 || (size_t)wrote >= len || access(path, R_OK))
			continue;
		if (get_elf_kind(path) == ELF_LIBRARY)
			return 0;
		return set_run_fault(f, -1, path, "is not a library for this machine",
				     "build and install ddpsess again");
	}
	snprintf(f->why, sizeof f->why, "%s is neither in %.200s, in ../lib from there, nor in %s",
		 file, self, SESSCTL_LIBDIR);
	snprintf(f->try, sizeof f->try, "make install, or keep it next to sessctl");
	return -1;
}
