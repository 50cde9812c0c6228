/* SPDX-License-Identifier: BSD-2-Clause */
/* Vaults that share pages: apart from each other, wiped, and no larger than they have to be. */
#include "secure/vault.h"
#include "support/undumped.h"
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N    300u
#define SIZE 2816u

static bool is_all(const struct ddps_vault *v, unsigned char c)
{
	for (size_t i = 0; i < v->size; i++)
		if (v->p[i] != c)
			return false;
	return true;
}

static void fill_vault(struct ddps_vaults *all, struct ddps_vault *v, unsigned i, size_t size)
{
	cr_assert_eq(ddps_vault_in(all, v, size), 0);
	cr_expect_eq(v->size, size);
	cr_expect_eq((uintptr_t)v->p % 64, 0u);
	cr_expect(is_all(v, 0), "zeros for whoever has it");
	memset(v->p, (int)(i % 255 + 1), size);
}

Test(vault, places_are_apart_and_wiped)
{
	struct ddps_vaults all = { NULL, 0 };
	struct ddps_vault v[N];

	for (unsigned i = 0; i < N; i++)
		fill_vault(&all, &v[i], i, SIZE);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = round; i < N; i += 2)
			ddps_vault_free(&v[i]);
		for (unsigned i = round; i < N; i += 2)
			fill_vault(&all, &v[i], i, SIZE);
		for (unsigned i = 0; i < N; i++)
			cr_expect(is_all(&v[i], (unsigned char)(i % 255 + 1)), "%u", i);
	}
	for (unsigned i = 0; i < N; i++) {
		ddps_vault_free(&v[i]);
		ddps_vault_free(&v[i]);
		cr_expect_null(v[i].p);
	}
	cr_expect_eq(all.n, 0u, "no pages are left");
	cr_expect_null(all.open);
}

/* Few take few pages, and many nearly what they have asked for. */
Test(vault, pages_are_shared)
{
	static struct ddps_vault v[2000];
	struct ddps_vaults all = { NULL, 0 };
	const size_t before = undumped_octets();

	cr_assert_eq(ddps_vault_in(&all, &v[0], SIZE), 0);
	cr_expect_leq(undumped_octets() - before, (size_t)sysconf(_SC_PAGESIZE));
	for (unsigned i = 1; i < 2000; i++)
		cr_assert_eq(ddps_vault_in(&all, &v[i], SIZE), 0);
	cr_expect_lt((undumped_octets() - before) / 2000, SIZE + 128);
	for (unsigned i = 0; i < 2000; i++)
		ddps_vault_free(&v[i]);
	cr_expect_eq(undumped_octets(), before);
}

Test(vault, sizes_do_not_mix)
{
	static const size_t sizes[] = { 0, 1, 64, 65, 4032, 4033, 65472, 65473, 200000 };
	struct ddps_vaults all = { NULL, 0 };
	struct ddps_vault v[3][9];

	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 9; k++)
			fill_vault(&all, &v[i][k], i * 9 + k, sizes[k]);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 9; k++)
			cr_expect(is_all(&v[i][k], (unsigned char)(i * 9 + k + 1)), "%u %u", i, k);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 9; k++)
			ddps_vault_free(&v[i][k]);
	cr_expect_eq(all.n, 0u);
}

/* It frees what it has of its parent, and nothing of that is what it was. */
Test(vault, a_child_of_fork_finds_zeros)
{
	struct ddps_vaults all = { NULL, 0 };
	struct ddps_vault v[2];
	int status;
	pid_t pid;

	fill_vault(&all, &v[0], 0, SIZE);
	fill_vault(&all, &v[1], 1, SIZE);
	cr_expect(ddps_vault_intact(&v[1]));
	pid = fork();
	if (!pid) {
		const bool good = is_all(&v[0], 0) && is_all(&v[1], 0) && !ddps_vault_intact(&v[1]);

		ddps_vault_free(&v[0]);
		ddps_vault_free(&v[1]);
		_exit(!good || all.n);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
	cr_expect(is_all(&v[0], 1) && is_all(&v[1], 2));
	ddps_vault_free(&v[0]);
	ddps_vault_free(&v[1]);
}
