/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU transmitter: where a batch ends, what it refers to, and what memory it has. */
#include "mpa_tcp/mpa_fpdu.h"
#include "mpa_tcp/mpa_tx.h"
#include "common/spare.h"
#include "support/mpa_support.h"
#include "unit/mem_fixture.h"

#define COPIED (130u * 1024) /* octets of one that is copied */

static uint8_t octets[65536];

/* The i-th segment has len[i] octets, the last one's length is that of those behind it; the payload is
 * in pieces[i] pieces. */
struct list {
	size_t len[8];
	unsigned nlen, next, most;
	int pieces, pieces_later;
	unsigned later; /* from which on it is pieces_later */
};

static int next_in_mpa_tx_batch(void *user, struct ddps_seg *seg, size_t mulpdu)
{
	struct list *l = user;
	unsigned i = l->next++;
	size_t len = l->len[i < l->nlen ? i : l->nlen - 1];

	(void)mulpdu;
	if (i >= l->most)
		return 0;
	seg->hdr_len = 14;
	seg->pay_len = len - 14;
	seg->npay = i < l->later ? l->pieces : l->pieces_later;
	for (int k = 0; k < seg->npay; k++) { /* none next to another */
		size_t n = seg->pay_len / (size_t)seg->npay;

		if (k + 1 == seg->npay)
			n = seg->pay_len - n * (size_t)k;
		seg->pay[k] = (struct iovec){ octets + 2048 * k, n };
	}
	return 1;
}

static struct list make_mpa_tx_batch_list(size_t len, int pieces)
{
	return (struct list){
		.len = { len }, .nlen = 1, .most = 1000, .pieces = pieces, .later = 1000
	};
}

static int fill_mpa_tx_batch(struct ddps_mpa_tx *tx, struct list *l, size_t mulpdu)
{
	return ddps_mpa_tx_fill(tx, next_in_mpa_tx_batch, l, mulpdu);
}

/* ---- where it ends ---- */

/* It is full with 64 KiB of large segments, neither before nor behind. */
Test(mpa_tx_batch, exactly_so_many_octets_are_enough)
{
	static const struct {
		size_t len;
		int fit;
	} row[] = { { 16378, 4 }, { 16374, 5 }, { 32762, 2 }, { 32758, 3 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct list l = make_mpa_tx_batch_list(row[i].len, 1);
		struct ddps_mpa_tx tx;

		ddps_mpa_tx_init(&tx);
		cr_expect_eq(fill_mpa_tx_batch(&tx, &l, 32768), row[i].fit, "%zu", row[i].len);
		ddps_mpa_tx_fini(&tx);
	}
}

/* One more of the largest has to have room, with all its pieces: to the last entry. */
Test(mpa_tx_batch, pieces_to_the_last_entry)
{
	static const struct {
		int pieces, pieces_later;
		unsigned later;
		int fit;
	} row[] = { { 16, 16, 1000, 60 }, { 18, 17, 14, 55 } };

	for (size_t i = 0; i < 2; i++) {
		struct list l = make_mpa_tx_batch_list(14 + 180, row[i].pieces);
		struct ddps_mpa_tx tx;

		l.pieces_later = row[i].pieces_later;
		l.later = row[i].later;
		ddps_mpa_tx_init(&tx);
		cr_expect_eq(fill_mpa_tx_batch(&tx, &l, 1442), row[i].fit, "row %zu", i);
		ddps_mpa_tx_fini(&tx);
	}
}

/* Where all is copied the largest has to have room behind it, with its markers; ten fill it entirely. */
Test(mpa_tx_batch, copies_to_the_last_octet)
{
	const size_t mulpdu = 13306;

	for (unsigned markers = 0; markers < 2; markers++)
		for (size_t first = 11802; first <= mulpdu; first += 4) {
			struct list l = make_mpa_tx_batch_list(mulpdu, 1);
			struct ddps_mpa_tx tx;
			size_t used = 0;
			int fit = 0;

			l.len[0] = first;
			l.len[1] = mulpdu;
			l.nlen = 2;
			while (used + ddps_mpa_fpdu_size(mulpdu, markers, 0) <= COPIED)
				used += ddps_mpa_fpdu_size(l.len[fit++ > 0], markers, used % 512);
			ddps_mpa_tx_init(&tx);
			tx.crc = true;
			tx.markers = markers;
			cr_expect_eq(fill_mpa_tx_batch(&tx, &l, mulpdu), fit, "%zu, markers %u",
				     first, markers);
			ddps_mpa_tx_fini(&tx);
		}
}

/* ---- what it refers to ---- */

/* 128 octets of payload are copied, one more is not. */
Test(mpa_tx_batch, little_payload_is_copied)
{
	for (size_t pay = 127; pay <= 129; pay++) {
		struct list l = make_mpa_tx_batch_list(14 + pay, 1);
		struct ddps_mpa_tx tx;
		struct iovec *iov;

		l.most = 3;
		ddps_mpa_tx_init(&tx);
		cr_assert_eq(fill_mpa_tx_batch(&tx, &l, 1442), 3);
		cr_expect_eq(ddps_mpa_tx_refers(&tx), pay > 128, "%zu", pay);
		cr_expect_eq(ddps_mpa_tx_iov(&tx, &iov), pay > 128 ? 7 : 1);
		ddps_mpa_tx_fini(&tx);
	}
}

static void send_all_mpa_tx_batch(struct ddps_mpa_tx *tx)
{
	ddps_mpa_tx_sent(tx, ddps_mpa_tx_left(tx));
}

Test(mpa_tx_batch, the_next_one_refers_to_nothing_of_the_last)
{
	struct list large = make_mpa_tx_batch_list(1000, 1), small = make_mpa_tx_batch_list(100, 1);
	struct ddps_mpa_tx tx;

	ddps_mpa_tx_init(&tx);
	cr_assert_gt(fill_mpa_tx_batch(&tx, &large, 1442), 0);
	cr_expect(ddps_mpa_tx_refers(&tx));
	send_all_mpa_tx_batch(&tx);
	cr_assert_gt(fill_mpa_tx_batch(&tx, &small, 1442), 0);
	cr_expect_not(ddps_mpa_tx_refers(&tx));
	ddps_mpa_tx_fini(&tx);
}

/* ---- memory ---- */

Test(mpa_tx_batch, a_copy_goes_with_its_batch)
{
	for (unsigned again = 0; again < 3; again++) {
		struct list l = make_mpa_tx_batch_list(1000, 1);
		long live = mem_live();
		struct ddps_mpa_tx tx;

		ddps_mpa_tx_init(&tx);
		for (unsigned i = 0; i <= again; i++) {
			cr_assert_gt(fill_mpa_tx_batch(&tx, &l, 1442), 0);
			cr_assert_eq(ddps_mpa_tx_keep_copy(&tx), 0);
			cr_expect_eq(mem_live(), live + 2, "the batch and one copy");
			send_all_mpa_tx_batch(&tx);
		}
		if (again == 2) { /* there is no more, and one without a copy before that */
			cr_assert_gt(fill_mpa_tx_batch(&tx, &l, 1442), 0);
			send_all_mpa_tx_batch(&tx);
			l.next = l.most;
			cr_assert_eq(fill_mpa_tx_batch(&tx, &l, 1442), 0);
		}
		ddps_mpa_tx_fini(&tx);
		cr_expect_eq(mem_live(), live);
	}
}

/* The batch is memory that another one had. */
Test(mpa_tx_batch, only_what_is_in_the_batch_is_copied)
{
	struct list l = make_mpa_tx_batch_list(1000, 1);
	struct ddps_spares spares = { 0 };
	void *mem = ddps_spare_get(&spares, 1u << 20);
	struct ddps_mpa_tx tx;
	struct iovec *iov;

	memset(mem, 0x7f, 1u << 20);
	ddps_spare_put(&spares, mem);
	l.most = 1;
	ddps_mpa_tx_init(&tx);
	tx.spares = &spares;
	cr_assert_eq(fill_mpa_tx_batch(&tx, &l, 1442), 1);
	cr_assert_eq(ddps_mpa_tx_keep_copy(&tx), 0);
	cr_assert_eq(ddps_mpa_tx_iov(&tx, &iov), 1);
	cr_expect_eq(iov->iov_len, 1008);
	ddps_mpa_tx_fini(&tx);
	ddps_spares_fini(&spares);
}

Test(mpa_tx_batch, without_memory_nothing_is_pulled)
{
	struct list l = make_mpa_tx_batch_list(1000, 1);
	struct ddps_mpa_tx tx;

	ddps_mpa_tx_init(&tx);
	mem_fail(1);
	cr_expect_eq(fill_mpa_tx_batch(&tx, &l, 1442), DDPS_E_NOMEM);
	cr_expect_eq(l.next, 0);
	ddps_mpa_tx_fini(&tx);
}
