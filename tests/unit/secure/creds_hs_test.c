/* SPDX-License-Identifier: BSD-2-Clause */
/* Credentials in handshakes of GnuTLS, both ends in memory. */
#include "creds_fixture.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(creds_hs, .init = creds_setup, .fini = creds_teardown);

#define KEY_A "00112233445566778899aabbccddeeff"
#define KEY_B "ffeeddccbbaa99887766554433221100"

struct pipe {
	uint8_t b[65536];
	size_t head, tail;
};

/* Two ends; what a handshake came to at each. */
struct end {
	struct ddps_creds_hs hs;
	struct ddps_creds_set *set;
	gnutls_session_t session;
	struct pipe *in, *out;
	int err;   /* of gnutls_handshake, or of the read behind it */
	int alert; /* that came, or -1 */
	struct ddps_verdict why;
};

static struct end client, server;
static struct pipe up, down;

static ssize_t push_pipe(gnutls_transport_ptr_t user, const void *p, size_t n)
{
	struct pipe *to = ((struct end *)user)->out;

	cr_assert(n <= sizeof to->b - to->tail);
	memcpy(to->b + to->tail, p, n);
	to->tail += n;
	return (ssize_t)n;
}

static ssize_t pull_pipe(gnutls_transport_ptr_t user, void *p, size_t n)
{
	struct end *e = user;

	if (n > e->in->tail - e->in->head)
		n = e->in->tail - e->in->head;
	if (!n) {
		gnutls_transport_set_errno(e->session, EAGAIN);
		return -1;
	}
	memcpy(p, e->in->b + e->in->head, n);
	e->in->head += n;
	return (ssize_t)n;
}

static int wait_not(gnutls_transport_ptr_t user, unsigned ms)
{
	const struct end *e = user;

	(void)ms;
	return e->in->tail > e->in->head;
}

static void open_end(struct end *e, struct ddps_creds *c, bool serves, struct pipe *in,
		     struct pipe *out)
{
	*e = (struct end){ .in = in, .out = out, .err = GNUTLS_E_AGAIN, .alert = -1 };
	e->set = use_creds(c, 0);
	cr_assert_eq(gnutls_init(&e->session, (serves ? GNUTLS_SERVER : GNUTLS_CLIENT) |
						      GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
						      GNUTLS_NO_TICKETS |
						      (serves ? 0 : GNUTLS_FORCE_CLIENT_CERT)),
		     0);
	cr_assert_eq(gnutls_priority_set_direct(e->session,
						"NORMAL:-VERS-ALL:+VERS-TLS1.3:+ECDHE-PSK", NULL),
		     0);
	gnutls_transport_set_ptr(e->session, e);
	gnutls_transport_set_push_function(e->session, push_pipe);
	gnutls_transport_set_pull_function(e->session, pull_pipe);
	gnutls_transport_set_pull_timeout_function(e->session, wait_not);
}

/* As whoever uses creds does: the alert that it says, or GnuTLS's. */
static void send_why(struct end *e)
{
	struct ddps_verdict v;

	if (ddps_creds_failed(&e->hs, e->session, e->err, -1, &v) && v.alert)
		gnutls_alert_send(e->session, GNUTLS_AL_FATAL, (gnutls_alert_description_t)v.alert);
	else
		gnutls_alert_send_appropriate(e->session, e->err);
}

static void step_end(struct end *e)
{
	uint8_t b[16];
	ssize_t n;

	if (e->err == GNUTLS_E_AGAIN) {
		e->err = gnutls_handshake(e->session);
		if (e->err && gnutls_error_is_fatal(e->err) &&
		    e->err != GNUTLS_E_FATAL_ALERT_RECEIVED)
			send_why(e);
	} else if (!e->err) {
		/* TLS 1.3: what the other end thinks of this one comes with its first record */
		n = gnutls_record_recv(e->session, b, sizeof b);
		if (n < 0 && n != GNUTLS_E_AGAIN)
			e->err = (int)n;
	}
	if (e->err == GNUTLS_E_FATAL_ALERT_RECEIVED && e->alert < 0)
		e->alert = (int)gnutls_alert_get(e->session);
}

static void shake(struct ddps_creds *of_client, struct ddps_creds *of_server)
{
	up = down = (struct pipe){ .head = 0 };
	open_end(&client, of_client, false, &down, &up);
	open_end(&server, of_server, true, &up, &down);
	cr_assert_eq(ddps_creds_give(&client.hs, client.set, client.session, false, &client.why), 0,
		     "%s", client.why.text);
	cr_assert_eq(ddps_creds_give(&server.hs, server.set, server.session, true, &server.why), 0,
		     "%s", server.why.text);
	for (int i = 0; i < 8; i++) {
		step_end(&client);
		step_end(&server);
	}
	if (client.err)
		ddps_creds_failed(&client.hs, client.session, client.err, client.alert,
				  &client.why);
	if (server.err)
		ddps_creds_failed(&server.hs, server.session, server.err, server.alert,
				  &server.why);
}

static void close_ends(void)
{
	for (struct end *const each[] = { &client, &server, NULL }, *const *e = each; *e; e++) {
		gnutls_deinit((*e)->session);
		ddps_creds_release((*e)->set);
	}
}

static int judge_end(struct end *e, const char *host, struct ddps_peer_id *id)
{
	const struct ddps_creds_want want = { .server = !host, .host = host };
	struct ddps_creds_peer peer;

	ddps_creds_peer_of(&e->hs, e->session, &peer);
	return ddps_creds_judge(e->set, &peer, &want, NOW, id, &e->why);
}

Test(creds_hs, both_show_certificates)
{
	struct site s;
	struct ddps_creds *c;
	struct ddps_peer_id id;

	make_site(&s);
	c = open_creds(&s.attr);
	shake(c, c);
	cr_expect_eq(client.err, 0);
	cr_expect_eq(server.err, 0);
	cr_expect_eq(judge_end(&client, "host.example", &id), 0, "%s", client.why.text);
	cr_expect_eq(judge_end(&server, NULL, &id), 0, "%s", server.why.text);
	cr_expect_str_eq(id.name, "dns:host.example");
	cr_expect_eq(judge_end(&client, "other.example", &id), DDPS_E_CERT_NAME);
	close_ends();
	ddps_creds_close(c);
}

/* A client that has only a CA: of another program, since ours is never without a certificate. */
Test(creds_hs, a_client_without_certificate_is_refused)
{
	struct site s;
	struct ddps_creds *c;
	gnutls_certificate_credentials_t none;

	make_site(&s);
	c = open_creds(&s.attr);
	up = down = (struct pipe){ .head = 0 };
	open_end(&client, c, false, &down, &up);
	open_end(&server, c, true, &up, &down);
	gnutls_certificate_allocate_credentials(&none);
	gnutls_credentials_set(client.session, GNUTLS_CRD_CERTIFICATE, none);
	ddps_creds_give(&server.hs, server.set, server.session, true, &server.why);
	for (int i = 0; i < 8; i++) {
		step_end(&client);
		step_end(&server);
	}
	cr_expect_eq(ddps_creds_failed(&server.hs, server.session, server.err, -1, &server.why),
		     DDPS_E_NO_CERT, "%s", gnutls_strerror(server.err));
	cr_expect_eq(client.alert, (int)DDPS_ALERT_CERTIFICATE_REQUIRED);
	close_ends();
	gnutls_certificate_free_credentials(none);
	ddps_creds_close(c);
}

/* ---- PSK ---- */

static struct ddps_creds *open_psk(const char *name, const char *text, const char *identity)
{
	struct ddps_secure_attr attr;

	ddps_secure_attr_init(&attr);
	attr.psk = put_text(name, text, 0600);
	attr.psk_identity = identity;
	return open_creds(&attr);
}

/* What both ends come to with these two files; @alert: what the client sees. */
static void shake_psk(const char *of_client, const char *of_server, const char *identity,
		      const char *servers_own)
{
	struct ddps_creds *c = open_psk("c", of_client, identity),
			  *s = open_psk("s", of_server, servers_own);

	shake(c, s);
	ddps_creds_close(c);
	ddps_creds_close(s);
}

Test(creds_hs, a_shared_key)
{
	struct ddps_peer_id id;

	shake_psk("node-a:" KEY_A "\n", "node-b:" KEY_B "\nnode-a:" KEY_A "\n", NULL, NULL);
	cr_expect_eq(client.err, 0, "%s", gnutls_strerror(client.err));
	cr_expect_eq(server.err, 0, "%s", gnutls_strerror(server.err));
	cr_expect_eq(judge_end(&server, NULL, &id), 0, "%s", server.why.text);
	cr_expect_eq(id.how, (unsigned)DDPS_PEER_PSK);
	cr_expect_str_eq(id.name, "psk:node-a");
	cr_expect_eq(judge_end(&client, "whatever.example", &id), 0, "%s", client.why.text);
	close_ends();
}

Test(creds_hs, an_unknown_identity_and_a_wrong_key_look_the_same_on_the_wire)
{
	int alert;

	shake_psk("node-a:" KEY_A "\n", "node-a:" KEY_B "\n", NULL, NULL);
	cr_expect_eq(server.why.code, DDPS_E_PSK_WRONG, "%s", gnutls_strerror(server.err));
	cr_expect(strstr(server.why.text, "node-a"));
	cr_expect_eq(client.why.code, DDPS_E_CERT_REFUSED, "%s: alert %d",
		     gnutls_strerror(client.err), client.alert);
	cr_expect(strstr(client.why.text, "node-a"), "%s", client.why.text);
	alert = client.alert;
	cr_expect_eq(alert, (int)DDPS_ALERT_DECRYPT_ERROR);
	close_ends();
	shake_psk("node-a:" KEY_A "\n", "node-b:" KEY_B "\n", NULL, NULL);
	cr_expect_eq(server.why.code, DDPS_E_PSK_UNKNOWN, "%s", gnutls_strerror(server.err));
	cr_expect_eq(client.why.code, DDPS_E_CERT_REFUSED, "%s: alert %d",
		     gnutls_strerror(client.err), client.alert);
	cr_expect_eq(client.alert, alert);
	close_ends();
}

Test(creds_hs, a_new_key_is_added_before_the_old_one_goes)
{
	static const char both[] = "node-a@1:" KEY_A "\nnode-a@2:" KEY_B "\n";
	struct ddps_peer_id id;

	shake_psk("node-a@1:" KEY_A "\n", both, "node-a", NULL);
	cr_expect_eq(judge_end(&server, NULL, &id), 0, "%s", server.why.text);
	cr_expect_str_eq(id.name, "psk:node-a");
	close_ends();
	shake_psk(both, "node-a@2:" KEY_B "\n", NULL, NULL); /* the one with the highest number */
	cr_expect_eq(judge_end(&server, NULL, &id), 0, "%s", server.why.text);
	cr_expect_str_eq(id.name, "psk:node-a");
	close_ends();
}

/* What is shown of an identity is not what it is looked up by. */
Test(creds_hs, an_identity_may_have_any_printable_character_and_255_of_them)
{
	struct ddps_secure_attr attr;
	struct ddps_creds *c, *s;
	struct ddps_peer_id id;
	char name[256], text[400];

	for (int len = 253; len < 258; len++) {
		memset(name, 'a', 255);
		name[len < 256 ? len : 9] = 0;
		if (len >= 256)
			name[len - 254] = '\\';
		snprintf(text, sizeof text, "%s:" KEY_A "\n", name);
		ddps_secure_attr_init(&attr);
		attr.psk = put_text("s", text, 0600);
		snprintf(text, sizeof text, "allow psk %s\n", name);
		attr.peers = put_text("peers", text, 0600);
		s = open_creds(&attr);
		snprintf(text, sizeof text, "%s@4:" KEY_A "\n", name);
		attr.peers = NULL;
		c = open_creds(&attr);
		shake(c, s);
		cr_expect_eq(client.err, 0, "%s", gnutls_strerror(client.err));
		cr_expect_eq(server.err, 0, "%s", gnutls_strerror(server.err));
		cr_expect_eq(judge_end(&server, NULL, &id), 0, "%d: %s", len, server.why.text);
		cr_expect_eq(judge_end(&client, "a", &id), 0, "%d: %s", len, client.why.text);
		cr_expect_eq(strncmp(id.name, "psk:aa", 6), 0, "%s", id.name);
		close_ends();
		ddps_creds_close(c);
		ddps_creds_close(s);
	}
}

Test(creds_hs, nobody_is_its_own_peer)
{
	shake_psk("node-a:" KEY_A "\n", "node-a:" KEY_A "\n", "node-a", "node-a");
	cr_expect_eq(server.why.code, DDPS_E_PSK_UNKNOWN, "%s", gnutls_strerror(server.err));
	cr_expect(strstr(server.why.text, "this side's own"), "%s", server.why.text);
	close_ends();
}

Test(creds_hs, of_several_identities_one_has_to_be_named)
{
	struct ddps_creds *c = open_psk("c", "node-a:" KEY_A "\nnode-b:" KEY_B "\n", NULL);
	gnutls_session_t session;
	struct ddps_creds_hs h;
	struct ddps_verdict why;
	struct ddps_creds_set *set = use_creds(c, 0);

	gnutls_init(&session, GNUTLS_CLIENT);
	cr_expect_eq(ddps_creds_give(&h, set, session, false, &why), DDPS_E_CONFIG);
	cr_expect(strstr(why.text, "psk-identity"));
	ddps_creds_release(set);
	put_text("c", "", 0600); /* and of none there is nothing to name */
	set = use_creds(c, 1000);
	cr_expect_eq(ddps_creds_give(&h, set, session, false, &why), DDPS_E_PSK_UNKNOWN);
	cr_expect(strstr(why.text, "has no key in it"), "%s", why.text);
	gnutls_deinit(session);
	ddps_creds_release(set);
	ddps_creds_close(c);
}

Test(creds_hs, a_certificate_does_not_pass_where_keys_are_shared)
{
	struct site s;
	struct ddps_creds *x509, *psk = open_psk("s", "node-a:" KEY_A "\n", NULL);

	make_site(&s);
	x509 = open_creds(&s.attr);
	shake(x509, psk);
	cr_expect_neq(server.err, 0);
	cr_expect_neq(client.err, 0);
	close_ends();
	ddps_creds_close(x509);
	ddps_creds_close(psk);
}

Test(creds_hs, the_peer_reads_why_it_was_refused)
{
	static const int alerts[] = { 42, 43, 44, 45, 46, 48, 49, 116 };
	struct site s;
	struct ddps_creds *c;
	struct ddps_creds_hs h = { .server = false };
	struct ddps_verdict why;

	make_site(&s);
	c = open_creds(&s.attr);
	h.set = use_creds(c, 0);
	for (size_t i = 0; i < sizeof alerts / sizeof *alerts; i++) {
		cr_expect_eq(ddps_creds_failed(&h, NULL, GNUTLS_E_FATAL_ALERT_RECEIVED, alerts[i],
					       &why),
			     DDPS_E_CERT_REFUSED);
		cr_expect(strstr(why.text, "host.pem"), "%s", why.text);
	}
	cr_expect_eq(ddps_creds_failed(&h, NULL, GNUTLS_E_FATAL_ALERT_RECEIVED, 80, &why), 0);
	ddps_creds_release(h.set);
	ddps_creds_close(c);
}
