/* SPDX-License-Identifier: BSD-2-Clause */
/* What a person can try next after a failure. */
#include "xfer/advice.h"
#include "xfer/target.h"
#include "cli/hostport.h"
#include <errno.h>
#include <string.h>
#include <strings.h>

static bool argument_has(const struct opts *o, const char *text)
{
	for (int i = 0; i < o->nargs; i++)
		if (strstr(o->arg[i], text))
			return true;
	return false;
}

static const char *for_nobody(const struct opts *o)
{
	return opts_over(o, "shm:") ? "is a listener running there, on this host?"
				    : "is a listener running on that address and port?";
}

/* Nobody can be between two processes of a host. */
static const char *for_cut(const struct opts *o)
{
	return opts_over(o, "shm:") ? "see what the peer reports; its process may have ended"
				    : "see what the peer reports; if it reports nothing, a NAT, a "
				      "firewall or a proxy between may have cut the connection";
}

static const char *for_errno(int sys_errno, const struct opts *o)
{
	switch (sys_errno) {
	case EADDRINUSE:
		if (opts_over(o, "shm:"))
			return "another name: a listener or a file has this one";
		return argument_has(o, "sctp:")
			       ? "another UDP port: encap=PORT in the URI (0: the system chooses)"
			       : "another port, or port 0 to let the system choose";
	case EADDRNOTAVAIL:
		return "an address of this machine (tcp://:PORT listens on all of them)";
	case EACCES:
	case EPERM:
		if (opts_over(o, "shm:"))
			return "a socket that this user may write to; abstract names (shm://@NAME) "
			       "are between processes of one user";
		return argument_has(o, "encap=off")
			       ? "root or CAP_NET_RAW, or encap=PORT: UDP needs neither"
			       : "a port from 1024 up, or more privilege";
	case ENOENT:
		return !opts_over(o, "shm:") ? NULL
		       : o->cmd == C_LISTEN  ? "the folder has to be there before"
					     : for_nobody(o);
	case ECONNREFUSED:
		return for_nobody(o);
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "is the address right, and is there a route to it?";
	case EMFILE:
	case ENFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return NULL;
	}
}

/* Terminate 2/0/06 and 2/0/07 (RFC 6581 section 8): the two halves of the negotiation. */
static const char *for_triple(const struct ddps_triple *t)
{
	if (t->layer != 2 || t->etype != 0)
		return NULL;
	if (t->code == 6)
		return "a smaller --ord here, or a larger --ird at the peer";
	if (t->code == 7)
		return "other --rtr types, or without --p2p";
	return NULL;
}

const char *advice_refused(const char *reason)
{
	static const struct {
		const char *begin, *advice;
	} rows[] = {
		{ "the file exists", "--force, or another name: URI/NAME" },
		{ "the file is larger than the limit", "a larger --max-size of sessctl listen" },
		{ "the file is larger than the listener", "a larger limit (ulimit -f) there" },
		{ "no such file",
		  "a name below the --dir of the listener; its folders must exist" },
		{ "the name is a link", "a name without links" },
		{ "a part of the name", "another name" },
		{ "not a regular file", "the name of a file" },
		{ "no space is left", "a smaller file, or more room there" },
		{ "this listener serves no files", "sessctl listen --dir DIRECTORY there" },
		{ "this listener takes no files", "sessctl listen without --read-only there" },
		{ "the listener's IRD", "--ird 1 or more of sessctl listen" },
		{ "Permission denied", "a --dir that the listener's user may read or write" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (!strncmp(reason, rows[i].begin, strlen(rows[i].begin)))
			return rows[i].advice;
	return "see what the listener prints";
}

/* A path where only get and put have one. */
static bool has_path(const struct opts *o)
{
	const char *host;

	for (int i = 0; i < o->nargs && !(o->cmd & (C_GET | C_PUT)); i++) {
		host = strstr(o->arg[i], "://");
		if (host && strncasecmp(o->arg[i], "shm:", 4) &&
		    host[3 + strcspn(host + 3, "/?")] == '/')
			return true;
	}
	return false;
}

bool advice_uri_whole(const char *uri, bool listening)
{
	char why[256];

	return !ddps_uri_check(uri, why, sizeof why) && hostport_has_host(uri) &&
	       (listening || hostport_has_port(uri));
}

/* Of the arguments, the URI. */
static bool is_lookup(const struct opts *o)
{
	struct target t;
	char why[256];

	for (int i = 0; i < o->nargs; i++)
		if (strstr(o->arg[i], "://"))
			return !target_parse(&t, o->arg[i], why, sizeof why) &&
			       advice_uri_whole(t.uri, false);
	return false;
}

/* After a name that did not fit: a pre-shared key has one of its own. */
static const char *for_name(const struct ddps_error *e)
{
	return strstr(e->text, "psk:") ? "--tls-peer psk:IDENTITY, or without --tls-peer"
				       : "one of these names in the URI, or --tls-peer NAME";
}

/* Of secured wires. */
static const char *for_secured(const struct ddps_error *e)
{
	switch (e->code) {
	case DDPS_E_NO_TLS:
		return "the package libddpsess-tls";
	case DDPS_E_NO_CERT:
		return "--tls-cert, --tls-key and --tls-ca, or --tls-psk; sessctl keys makes them";
	case DDPS_E_CONFIG:
	case DDPS_E_KEY_MISMATCH:
	case DDPS_E_CERT:
	case DDPS_E_CERT_USAGE:
	case DDPS_E_CERT_WEAK:
	case DDPS_E_CRL:
		return "sessctl check-keys, which says what is wrong with the files; sessctl keys "
		       "makes new ones";
	case DDPS_E_KEY_OPEN:
		return "chmod 600; and a new key, if others may have read it";
	case DDPS_E_CERT_NAME:
		return for_name(e);
	case DDPS_E_CERT_CA:
		return "--tls-ca with the certificate of the CA that the peer's is from";
	case DDPS_E_CERT_EXPIRED:
	case DDPS_E_CERT_NOT_YET:
		return "a new certificate (sessctl keys host), or the right time on both hosts";
	case DDPS_E_CERT_REVOKED:
		return "a new key and certificate for that host (sessctl keys host)";
	case DDPS_E_CERT_REFUSED:
		return "what the listener prints, which has the reason; sessctl check-keys here";
	case DDPS_E_NOT_LISTED:
		return "a rule for this peer in --tls-peers";
	case DDPS_E_PLAIN_PEER:
		return "the port of a secured listener; tcp:// and sctp:// reach a plain one";
	case DDPS_E_TLS_OLD:
		return "is it a sessctl listener? other peers need TLS 1.3, or DTLS 1.2 for "
		       "sctps://";
	case DDPS_E_TLS_SUITE:
		return "the same on both sides: --tls-psk, or --tls-cert, --tls-key and --tls-ca";
	case DDPS_E_CUT_SHORT:
	case DDPS_E_FORGED:
	case DDPS_E_ALERT:
		return "see what the peer reports; if it reports nothing, something between has "
		       "cut "
		       "or changed what was sent";
	default:
		return NULL;
	}
}

static const char *for_code(const struct ddps_error *e, const struct opts *o, bool was_up)
{
	switch (e->code) {
	case DDPS_E_ADDRESS:
		if (has_path(o))
			return "without a path: only get and put name a file";
		if (is_lookup(o))
			return "check the name, or give a numeric address";
		return "tcp://HOST:PORT or sctp://HOST[,HOST...]:PORT, secured tls://HOST:PORT or "
		       "sctps://HOST:PORT, on one host shm:///PATH; options: ddpsess(7)";
	case DDPS_E_UNSUPPORTED:
		return "?backend=native, which needs nothing of the kernel";
	case DDPS_E_REFUSED:
		return for_nobody(o);
	case DDPS_E_TIMEDOUT:
		if (opts_over(o, "shm:"))
			return "is the peer's process stopped or busy? --timeout gives more time";
		return "check address and firewall, and whether the peer is an iWARP responder; "
		       "--timeout gives more time";
	case DDPS_E_REJECTED:
		return "ask the peer; what it sent is shown as private data";
	case DDPS_E_CLOSED:
	case DDPS_E_RESET:
		if (!was_up && strstr(e->text, "TLS handshake"))
			return "is a listener of tls:// there? see what it prints";
		return was_up || e->sys_errno ? for_cut(o)
		       : o->plain	      ? "is the peer an iWARP responder?"
				  : "the peer may know unenhanced set-up only: --plain, or "
				    "--legacy-retry";
	case DDPS_E_REVISION:
		return "--plain, which sends MPA revision 1";
	case DDPS_E_KEY:
		if (strstr(e->text, "speaks TLS"))
			return "tls:// in place of tcp://, with --tls-cert, --tls-key and "
			       "--tls-ca, or "
			       "--tls-psk";
		return "is the peer an iWARP responder?";
	case DDPS_E_NO_DDP:
		return "the peer speaks SCTP but not DDP: check the port";
	case DDPS_E_IRD:
		return "a smaller --ord here, or a larger --ird at the peer";
	case DDPS_E_RTR:
		return "other --rtr types, or without --p2p";
	case DDPS_E_TOO_LONG:
		return "shorter --private-data: 508 octets, 512 with --plain";
	default:
		return for_secured(e);
	}
}

const char *advice_for(const struct ddps_error *e, const struct opts *o, bool was_up)
{
	const char *s = e->has_triple ? for_triple(&e->triple) : NULL;

	if (!s)
		s = for_errno(e->sys_errno, o);
	return s ? s : for_code(e, o, was_up);
}

const char *advice_uri(int err, const char *uri, bool listening, char *buf, size_t len)
{
	if (err == DDPS_E_SYSTEM)
		return listening ? "cannot listen there" : "cannot connect";
	if (err == DDPS_E_NO_CERT)
		return "a secured wire needs a certificate or a pre-shared key, and none was given";
	if (err != DDPS_E_ADDRESS)
		return ddps_strerror(err);
	if (ddps_uri_check(uri, buf, len))
		return buf;
	return listening ? "the host name could not be looked up"
	       : !strncasecmp(uri, "shm:", 4)
		       ? "a path, or a name behind @, is needed to connect"
		       : "a host, and a port other than 0, are needed to connect";
}
