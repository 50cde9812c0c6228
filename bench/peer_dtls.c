/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit of sctps://: a plain program of OpenSSL over UDP, DTLS 1.2 with AES-128-GCM, a record a datagram.  No
 * retransmission: the receiver says in records of its own how many have come, so that no more than a window is
 * under way.  A datagram that is lost ends the measurement.
 *
 * usage: peer_dtls bw CONTENT SECONDS		CONTENT: octets in a record
 */
#include "peer_openssl.h"
#include "peer_udp.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define WINDOW	(1u << 20)
#define BUFFER	(8 << 20)
#define CONTENT 16384u /* most of a record */
#define LINK	16384u /* most of a datagram in the handshake */

static int make_dtls_socket(struct sockaddr_in *sa)
{
	struct timeval second = { .tv_sec = 1 };
	int fd = peer_udp(sa, BUFFER);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second))
		peer_die("SO_RCVTIMEO");
	return fd;
}

static SSL *begin_openssl_dtls(int fd, struct sockaddr_in *peer, int server)
{
	SSL_CTX *c = SSL_CTX_new(server ? DTLS_server_method() : DTLS_client_method());
	BIO *bio = BIO_new_dgram(fd, BIO_NOCLOSE);
	SSL *s;

	peer_want_ssl(c && bio && SSL_CTX_set_min_proto_version(c, DTLS1_2_VERSION) &&
			      SSL_CTX_set_cipher_list(c, "PSK-AES128-GCM-SHA256"),
		      "context");
	SSL_CTX_set_psk_client_callback(c, server ? NULL : peer_offer_psk);
	SSL_CTX_set_psk_server_callback(c, server ? peer_find_psk : NULL);
	BIO_ctrl(bio, BIO_CTRL_DGRAM_SET_CONNECTED, 0, peer);
	s = SSL_new(c);
	peer_want_ssl(s != NULL, "SSL");
	SSL_set_options(s, SSL_OP_NO_QUERY_MTU);
	SSL_set_mtu(s, LINK);
	SSL_set_bio(s, bio, bio);
	peer_want_ssl((server ? SSL_accept(s) : SSL_connect(s)) == 1, "handshake");
	return s;
}

/* A record of one octet is the end. */
static void serve_dtls(SSL *s, const struct peer_args *a)
{
	static uint8_t buf[CONTENT];
	const uint32_t each = (uint32_t)(WINDOW / 4 / a->size);
	uint32_t got = 0;
	int n;

	do {
		n = SSL_read(s, buf, sizeof buf);
		peer_want_ssl(n > 0, "read");
		got++;
		if (n == 1 || got % each == 0)
			peer_want_ssl(SSL_write(s, &got, sizeof got) == sizeof got,
				      "acknowledgement");
	} while (n != 1);
}

static void await_dtls_acks(SSL *s, uint32_t *acked, uint32_t least)
{
	while (*acked < least)
		peer_want_ssl(SSL_read(s, acked, sizeof *acked) == sizeof *acked,
			      "no acknowledgement: a datagram was lost");
}

static void measure_dtls(SSL *s, const struct peer_args *a, pid_t child)
{
	const uint32_t most = (uint32_t)(WINDOW / a->size);
	uint8_t *mem = peer_memory(CONTENT);
	uint32_t sent = 0, acked = 0;
	double begin = peer_now();

	do {
		peer_want_ssl(SSL_write(s, mem, (int)a->size) == (int)a->size, "write");
		if (++sent > most)
			await_dtls_acks(s, &acked, sent - most);
	} while (peer_now() - begin < a->seconds);
	peer_want_ssl(SSL_write(s, mem, 1) == 1, "write");
	await_dtls_acks(s, &acked, sent + 1);
	peer_report_both(a, sent, peer_now() - begin, child);
}

int main(int argc, char **argv)
{
	struct peer_args a = peer_parse(argc, argv, "bw");
	struct sockaddr_in here, there;
	int fd = make_dtls_socket(&there), mine = make_dtls_socket(&here);
	pid_t child;

	if (a.size < 2 || a.size > CONTENT)
		peer_die("CONTENT");
	if (connect(fd, (struct sockaddr *)&here, sizeof here) ||
	    connect(mine, (struct sockaddr *)&there, sizeof there))
		peer_die("connect");
	child = fork();
	if (child < 0)
		peer_die("fork");
	if (!child) {
		peer_pin(0);
		alarm((unsigned)a.seconds + 20);
		serve_dtls(begin_openssl_dtls(fd, &here, 1), &a);
		return 0;
	}
	peer_pin(1);
	alarm((unsigned)a.seconds + 20);
	measure_dtls(begin_openssl_dtls(mine, &there, 0), &a, child);
	return 0;
}
