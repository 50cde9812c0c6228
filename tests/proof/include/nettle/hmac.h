/* SPDX-License-Identifier: BSD-2-Clause */
/* What the proofs know of Nettle: what it reads, and that a digest may be anything. */
#include <stddef.h>
#include <stdint.h>

struct hmac_sha256_ctx {
	uint8_t state[32];
};

/*@ requires \valid(ctx) && \valid_read(key + (0 .. length - 1));
    assigns *ctx \from key[0 .. length - 1];
    ensures \initialized(&ctx->state[0 .. 31]); */
void hmac_sha256_set_key(struct hmac_sha256_ctx *ctx, size_t length, const uint8_t *key);
/*@ requires \valid(ctx) && (length == 0 || \valid_read(data + (0 .. length - 1)));
    assigns *ctx \from *ctx, data[0 .. length - 1];
    ensures \initialized(&ctx->state[0 .. 31]); */
void hmac_sha256_update(struct hmac_sha256_ctx *ctx, size_t length, const uint8_t *data);
/*@ requires \valid(ctx) && \valid(digest + (0 .. length - 1));
    assigns digest[0 .. length - 1] \from *ctx;
    ensures \initialized(&digest[0 .. length - 1]); */
void hmac_sha256_digest(struct hmac_sha256_ctx *ctx, size_t length, uint8_t *digest);
