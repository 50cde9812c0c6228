/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AEADs by ipsec-mb, which is loaded if it is there.  Its direct calls are used: they keep all their state in
 * what they are given, so that any number of threads may make them.
 */
#include "aead_lib.h"
#include <stdbool.h>
#if __has_include(<intel-ipsec-mb.h>)
#include <dlfcn.h>
#include <errno.h>
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <string.h>

#if IMB_VERSION_NUM < 0x20000
#define SONAME	    "libIPSec_MB.so.1"
#define WITHOUT_AES IMB_ARCH_NOAESNI /* and what has less */
#else
#define SONAME	    "libIPSec_MB.so.2"
#define WITHOUT_AES IMB_ARCH_NONE
#endif

struct mb_state {
	union {
		struct gcm_key_data gcm;
		uint8_t chacha[32];
	} key;
	union {
		struct gcm_context_data gcm;
		struct chacha20_poly1305_context_data chacha;
	} at; /* of the record that is being worked on */
	enum ddps_suite suite;
};

static IMB_MGR *mb;
static const char *mb_missing;

static size_t mb_size(enum ddps_suite suite)
{
	size_t all = sizeof(struct mb_state);

	(void)suite;
	return (all + DDPS_AEAD_ALIGN - 1) & ~(size_t)(DDPS_AEAD_ALIGN - 1);
}

static int mb_key(void *st, enum ddps_suite suite, const uint8_t *key)
{
	struct mb_state *s = st;

	s->suite = suite;
	if (suite == DDPS_SUITE_AES_128_GCM)
		mb->gcm128_pre(key, &s->key.gcm);
	else if (suite == DDPS_SUITE_AES_256_GCM)
		mb->gcm256_pre(key, &s->key.gcm);
	else
		memcpy(s->key.chacha, key, sizeof s->key.chacha);
	return 0;
}

static void mb_begin(struct mb_state *s, const uint8_t *nonce, const void *ad, size_t adlen)
{
	if (s->suite == DDPS_SUITE_AES_128_GCM)
		mb->gcm128_init(&s->key.gcm, &s->at.gcm, nonce, ad, adlen);
	else if (s->suite == DDPS_SUITE_AES_256_GCM)
		mb->gcm256_init(&s->key.gcm, &s->at.gcm, nonce, ad, adlen);
	else
		mb->chacha20_poly1305_init(s->key.chacha, &s->at.chacha, nonce, ad, adlen);
}

static void mb_encrypt(struct mb_state *s, uint8_t *out, const uint8_t *in, size_t n)
{
	if (s->suite == DDPS_SUITE_AES_128_GCM)
		mb->gcm128_enc_update(&s->key.gcm, &s->at.gcm, out, in, n);
	else if (s->suite == DDPS_SUITE_AES_256_GCM)
		mb->gcm256_enc_update(&s->key.gcm, &s->at.gcm, out, in, n);
	else
		mb->chacha20_poly1305_enc_update(s->key.chacha, &s->at.chacha, out, in, n);
}

static void mb_tag(struct mb_state *s, uint8_t *tag)
{
	if (s->suite == DDPS_SUITE_CHACHA20_POLY1305)
		mb->chacha20_poly1305_finalize(&s->at.chacha, tag, DDPS_AEAD_TAG);
	else if (s->suite == DDPS_SUITE_AES_128_GCM)
		mb->gcm128_enc_finalize(&s->key.gcm, &s->at.gcm, tag, DDPS_AEAD_TAG);
	else
		mb->gcm256_enc_finalize(&s->key.gcm, &s->at.gcm, tag, DDPS_AEAD_TAG);
}

/* Octets that are copied together before they are sealed: a call for each piece costs more. */
#define MB_GATHER 2048u

/* All of it in one call. */
static void mb_gcm(struct mb_state *s, bool sealing, const uint8_t *nonce, const void *ad,
		   size_t adlen, uint8_t *out, const uint8_t *in, size_t n, uint8_t *tag)
{
	const bool is_128 = s->suite == DDPS_SUITE_AES_128_GCM;
	const aes_gcm_enc_dec_t gcm = sealing ? (is_128 ? mb->gcm128_enc : mb->gcm256_enc)
					      : (is_128 ? mb->gcm128_dec : mb->gcm256_dec);

	gcm(&s->key.gcm, &s->at.gcm, out, in, n, nonce, ad, adlen, tag, DDPS_AEAD_TAG);
}

/* Copy what is in several pieces to @out, where it is sealed then; false: it is too much for that. */
static bool mb_gather(const struct iovec *iov, int n, uint8_t *out, const uint8_t **in, size_t *len)
{
	*len = 0;
	for (int i = 0; i < n; i++)
		*len += iov[i].iov_len;
	*in = n == 1 ? iov[0].iov_base : out;
	if (n == 1 || *len > MB_GATHER)
		return n == 1;
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len)
			memcpy(out, iov[i].iov_base, iov[i].iov_len);
		out += iov[i].iov_len;
	}
	return true;
}

static int mb_seal(void *st, const uint8_t *nonce, const void *ad, size_t adlen,
		   const struct iovec *iov, int n, uint8_t *out)
{
	struct mb_state *s = st;
	const uint8_t *in;
	size_t len;

	if (s->suite != DDPS_SUITE_CHACHA20_POLY1305 && mb_gather(iov, n, out, &in, &len)) {
		mb_gcm(s, true, nonce, ad, adlen, out, in, len, out + len);
		return 0;
	}
	mb_begin(s, nonce, ad, adlen);
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len)
			mb_encrypt(s, out, iov[i].iov_base, iov[i].iov_len);
		out += iov[i].iov_len;
	}
	mb_tag(s, out);
	return 0;
}

/* In a time that says nothing of where they differ. */
static bool tags_equal(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;

	for (size_t i = 0; i < DDPS_AEAD_TAG; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

static int mb_open(void *st, const uint8_t *nonce, const void *ad, size_t adlen, const uint8_t *in,
		   size_t len, uint8_t *out)
{
	struct mb_state *s = st;
	uint8_t tag[DDPS_AEAD_TAG];

	if (s->suite != DDPS_SUITE_CHACHA20_POLY1305) {
		mb_gcm(s, false, nonce, ad, adlen, out, in, len, tag);
	} else {
		mb_begin(s, nonce, ad, adlen);
		if (len)
			mb->chacha20_poly1305_dec_update(s->key.chacha, &s->at.chacha, out, in,
							 len);
		mb_tag(s, tag);
	}
	if (tags_equal(tag, in + len))
		return 0;
	explicit_bzero(out, len);
	return -EBADMSG;
}

static void mb_wipe(void *st)
{
	explicit_bzero(st, sizeof(struct mb_state));
}

static const struct ddps_aead mb_table = {
	.name = "ipsec-mb",
	.size = mb_size,
	.init = mb_key,
	.seal = mb_seal,
	.open = mb_open,
	.wipe = mb_wipe,
};

/* What it seals GnuTLS opens, and the other way round. */
static bool agree_on_suite(const struct ddps_aead *sealer, const struct ddps_aead *opener,
			   enum ddps_suite suite, size_t n)
{
	struct {
		_Alignas(DDPS_AEAD_ALIGN) struct mb_state s;
	} st[2];
	uint8_t plain[MB_GATHER + 601], sealed[sizeof plain + DDPS_AEAD_TAG], opened[sizeof plain];
	static const uint8_t ad[5] = { 23, 3, 3, 2, 106 };
	struct iovec iov[] = { { plain, 7 }, { plain + 7, n - 8 }, { plain + n - 1, 1 } };
	bool same = false;

	for (size_t i = 0; i < sizeof plain; i++)
		plain[i] = (uint8_t)(i * 7);
	if (sealer->init(&st[0], suite, plain + 64))
		return false;
	if (!opener->init(&st[1], suite, plain + 64)) {
		same = !sealer->seal(&st[0], plain, ad, sizeof ad, iov, 3, sealed) &&
		       !opener->open(&st[1], plain, ad, sizeof ad, sealed, n, opened) &&
		       !memcmp(plain, opened, n);
		opener->wipe(&st[1]);
	}
	sealer->wipe(&st[0]);
	return same;
}

static bool agrees_with_gnutls(void)
{
	static const enum ddps_suite all[] = { DDPS_SUITE_AES_128_GCM, DDPS_SUITE_AES_256_GCM,
					       DDPS_SUITE_CHACHA20_POLY1305 };
	const struct ddps_aead *other = ddps_aead_gnutls();

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!agree_on_suite(&mb_table, other, all[i], 601) ||
		    !agree_on_suite(&mb_table, other, all[i], MB_GATHER + 601) ||
		    !agree_on_suite(other, &mb_table, all[i], 601))
			return false;
	return true;
}

static const char *load_ipsec_mb(void)
{
	void *lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	IMB_MGR *(*make)(uint64_t);
	void (*drop)(IMB_MGR *);
	void (*begin)(IMB_MGR *, IMB_ARCH *);
	unsigned (*version)(void);
	IMB_ARCH arch = IMB_ARCH_NONE;

	if (!lib)
		return SONAME " is not installed";
	make = (IMB_MGR * (*)(uint64_t)) dlsym(lib, "alloc_mb_mgr");
	drop = (void (*)(IMB_MGR *))dlsym(lib, "free_mb_mgr");
	begin = (void (*)(IMB_MGR *, IMB_ARCH *))dlsym(lib, "init_mb_mgr_auto");
	version = (unsigned (*)(void))dlsym(lib, "imb_get_version");
	/* its table of functions may grow from release to release, so it has to be that of the header */
	if (!make || !drop || !begin || !version || version() != IMB_VERSION_NUM) {
		dlclose(lib);
		return SONAME " is another release than that of the build";
	}
	mb = make(0);
	if (!mb)
		return "no memory for " SONAME;
	begin(mb, &arch);
	if (arch <= WITHOUT_AES || !agrees_with_gnutls()) {
		drop(mb);
		mb = NULL;
		return arch <= WITHOUT_AES ? "the processor has no AES instructions"
					   : SONAME " does not seal as GnuTLS does";
	}
	return NULL;
}

static void look_for_ipsec_mb(void)
{
	mb_missing = load_ipsec_mb();
}

const struct ddps_aead *ddps_aead_ipsec_mb(const char **why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_for_ipsec_mb);
	if (why)
		*why = mb_missing;
	return mb_missing ? NULL : &mb_table;
}

#else

const struct ddps_aead *ddps_aead_ipsec_mb(const char **why)
{
	if (why)
		*why = "built without it";
	return NULL;
}

#endif
