# SPDX-License-Identifier: BSD-2-Clause
# Certificates that a peer may show, by GnuTLS's certtool, in the working directory, of the CA of "sessctl keys ca".
# shellcheck shell=bash

# certificate NAME LINE...: with these lines in its template
certificate() {
	local name=$1
	shift
	printf '%s\n' "cn = $name" "ip_address = 127.0.0.1" signing_key "$@" >t
	certtool --generate-privkey --key-type ecdsa --curve secp256r1 --outfile "$name.key" 2>/dev/null
	chmod 600 "$name.key"
	certtool --generate-certificate --load-privkey "$name.key" --load-ca-certificate ca.pem --load-ca-privkey ca.key \
		--template t --outfile "$name.pem" 2>made.out
}

# old, early, client and server: of yesterday, of tomorrow, and for one role only
certificates_with_a_flaw() {
	local day=86400 now
	now=$(date +%s)
	certificate old "activation_date = $(date -u -d "@$((now - 2 * day))" '+"%F %T"')" \
		"expiration_date = $(date -u -d "@$((now - day))" '+"%F %T"')" tls_www_client tls_www_server
	certificate early "activation_date = $(date -u -d "@$((now + day))" '+"%F %T"')" \
		"expiration_date = $(date -u -d "@$((now + 2 * day))" '+"%F %T"')" tls_www_client tls_www_server
	certificate client "expiration_days = 3" tls_www_client
	certificate server "expiration_days = 3" tls_www_server
}

# revoke NAME: crl.pem says so
revoke() {
	printf 'crl_next_update = 3\ncrl_number = 1\n' >t
	certtool --generate-crl --load-ca-certificate ca.pem --load-ca-privkey ca.key --template t \
		--load-certificate "$1.pem" --outfile crl.pem >/dev/null 2>&1
}
