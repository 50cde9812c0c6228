#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessctl keys and check-keys: what they make is judged by OpenSSL and GnuTLS's own tools; what is wrong is said.
# shellcheck source=/dev/null disable=SC2154,SC2034 # variables of lib.bash
. "$(dirname "$0")/lib.bash"
umask 022

mode_is() { # FILE MODE
	[ "$(stat -c %a "$1")" = "$2" ] && return
	why="$1 has mode $(stat -c %a "$1")"
	return 1
}

# judged COMMAND...: a judge's own words if it is not content
judged() {
	"$@" >judge.out 2>&1 </dev/null && return
	why="$*: $(tail -n 3 judge.out)"
	return 1
}

# new_site DIR: a CA and a host
new_site() {
	rm -rf "$1" && mkdir -m 700 "$1" && run 0 keys ca --dir "$1" &&
		run 0 keys host --dir "$1" node-a.example node-a 127.0.0.1 ::1 spiffe://example/node-a
}

# files_of DIR: the options that name them
files_of() {
	local host=$1/node-a.example
	files=(--tls-cert "$host.pem" --tls-key "$host.key" --tls-ca "$1/ca.pem")
}

# finds TEXT CODE ARGUMENT...: check-keys fails and says so
finds() {
	local text=$1 code=$2
	shift 2
	run 1 check-keys --json "$@" && has out code "$code" || return
	run 1 check-keys "$@" && says out "$text"
}

three_commands() {
	rm -rf site && mkdir site || return
	(umask 0 && run 0 keys ca --dir site && run 0 keys host --dir site node-a.example && run 0 keys psk --dir site node-a) &&
		only site ca.key ca.pem node-a.example.key node-a.example.pem node-a.psk &&
		mode_is site/ca.key 600 && mode_is site/node-a.example.key 600 && mode_is site/node-a.psk 600 &&
		mode_is site/ca.pem 644 && run 0 check-keys --tls-cert site/node-a.example.pem --tls-key site/node-a.example.key \
		--tls-ca site/ca.pem --tls-psk site/node-a.psk && says out "until $(date -u -d '+90 days' +%F)" &&
		run 0 keys ca --json --dir "$(mktemp -d -p .)" && has out event made && has out kind ca
}

# No name of the key's file is ever there with another mode: each state is looked at by the system's own trace.
no_window() {
	command -v strace >/dev/null || {
		echo "skip strace is not here: how files are opened is not looked at"
		return 0
	}
	rm -rf w && mkdir w && (umask 0 && ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=openat,umask,linkat,renameat2 -o trace "$SESSCTL" keys psk --dir w x >/dev/null) || return
	awk '/umask\(/ { u = $0; sub(/.*umask\(/, "", u); sub(/\).*/, "", u) }
		/O_TMPFILE|O_CREAT/ { n++; if (u !~ /77$/) bad = 1 } END { exit bad || !n }' trace && mode_is w/x.psk 600 && return
	why="$(grep -E 'umask|O_TMPFILE|O_CREAT' trace | tr '\n' ' ')"
	return 1
}

never_overwrites() {
	new_site keep || return
	run 0 keys psk --dir keep node-a && cp -a keep before || return
	run 1 keys ca --dir keep && says err "File exists" && says err "try:" &&
		run 1 keys host --dir keep node-a.example && says err "File exists" &&
		run 1 keys psk --dir keep node-a && says err "File exists" || return
	diff -r keep before >judge.out && rm keep/ca.key || return
	run 1 keys ca --dir keep && absent keep/ca.key # the certificate is there: no key of another one
}

hostile_names() {
	local what
	for what in link dangling fifo folder; do
		rm -rf h target && mkdir h && echo keep >target || return
		case $what in
		link) ln -s ../target h/x.psk ;;
		dangling) ln -s ../nothing h/x.psk ;;
		fifo) mkfifo h/x.psk ;;
		folder) mkdir h/x.psk ;;
		esac
		run 1 keys psk --dir h x && says err "try:" && only h x.psk && absent nothing &&
			[ "$(cat target)" = keep ] || return
	done
	run 1 keys psk --dir nowhere x && says err "No such file" && run 2 keys psk --dir h 'a:b' && says err "':'" &&
		run 2 keys psk '#a' && run 0 keys psk --dir h '../../evil' && [ -e 'h/_._.._evil.psk' ] && return
	why="${why:-names: $(ls -A h)}"
	return 1
}

bad_names() {
	new_site b || return
	local name
	for name in 'a b' 'ü.example' 'a..b' '*' 'x.example/y' "$(printf 'a%.0s' {1..64}).example"; do
		run 1 keys host --dir b "$name" && says err "host name" && says err "try: 'sessctl keys host NAME...'" || return
	done
	run 1 keys host --dir b 192.0.2.300 && says err "not of digits alone" && run 1 keys host --dir b tls://node-a:7174 &&
		says err "is where one dials" && only b ca.key ca.pem node-a.example.key node-a.example.pem || return
	run 0 keys --help && says out "keys COMMAND --help" || return
	run 1 keys host --dir b '' && says err "a name is needed" && run 1 keys host --dir b ok.example 'a b' && absent b/ok.example.key && run 2 keys host && run 2 keys &&
		run 2 keys cert && says err "no command 'cert'"
}

# The file is not there yet; whether it can be is known.
keylog_folder() {
	new_site l || return
	printf 'cert node-a.example.pem\nkey node-a.example.key\nca ca.pem\nkeylog none/secrets\n' >l/settings
	run 1 check-keys l/settings && says out "cannot be made: its folder is not there" || return
	mkdir l/none && run 0 check-keys l/settings && says out secrets && absent l/none/secrets
}

a_ca_that_cannot_sign() {
	new_site c && files_of c || return
	run 1 keys host --dir c --ca c/node-a.example.pem --ca-key c/node-a.example.key x.example && says err "no CA's" &&
		run 1 keys host --dir c --ca-key c/node-a.example.key x.example && says err "not that of its certificate" || return
	chmod 640 c/ca.key
	run 1 keys host --dir c x.example && says err "chmod 600" && run 1 keys host --dir . x.example && says err "sessctl keys ca" &&
		absent c/x.example.key
}

ends_with_its_ca() {
	rm -rf e && mkdir e && run 0 keys ca --dir e --days 10 && run 0 keys host --dir e --days 500 x.example || return
	judged openssl x509 -in e/x.example.pem -noout -checkend $((9 * 86400)) || return
	! openssl x509 -in e/x.example.pem -noout -checkend $((11 * 86400)) >/dev/null
}

openssl_judges() {
	new_site o || return
	local host=o/node-a.example
	for purpose in sslserver sslclient; do
		judged openssl verify -x509_strict -CAfile o/ca.pem -purpose $purpose -verify_hostname node-a $host.pem || return
	done
	judged openssl verify -x509_strict -CAfile o/ca.pem -verify_ip 127.0.0.1 $host.pem &&
		judged openssl verify -x509_strict -CAfile o/ca.pem -verify_ip ::1 $host.pem &&
		judged openssl pkey -in $host.key -check -noout && judged openssl pkey -in o/ca.key -check -noout || return
	! openssl verify -CAfile o/ca.pem -verify_hostname other $host.pem >/dev/null 2>&1 &&
		[ "$(openssl x509 -in $host.pem -noout -pubkey)" = "$(openssl pkey -in $host.key -pubout)" ]
}

certtool_judges() {
	new_site g || return
	judged certtool --verify --load-ca-certificate g/ca.pem --infile g/node-a.example.pem --verify-hostname node-a.example \
		--verify-purpose 1.3.6.1.5.5.7.3.1 &&
		judged certtool --verify --load-ca-certificate g/ca.pem --infile g/node-a.example.pem \
			--verify-purpose 1.3.6.1.5.5.7.3.2 && judged certtool --key-info --infile g/node-a.example.key
}

# handshake CLIENT-OPTION...: OpenSSL at both ends, TLS 1.3, both with certificates
handshake() {
	rm -f s.log
	openssl s_server -accept 127.0.0.1:0 -tls1_3 -cert t/node-a.example.pem -key t/node-a.example.key -CAfile t/ca.pem \
		-Verify 1 -verify_return_error -quiet -naccept 1 >s.log 2>&1 </dev/null &
	pid=$!
	local port='' i
	for ((i = 0; i < 200 && !port; i++)); do
		port=$(ss -Hltnp 2>/dev/null | sed -n "s/.*127.0.0.1:\([0-9]*\) .*pid=$pid,.*/\1/p")
		[ -n "$port" ] || sleep 0.05
	done
	echo | timeout 20 openssl s_client -connect "127.0.0.1:$port" -tls1_3 -CAfile t/ca.pem -verify_return_error \
		-verify_ip 127.0.0.1 "$@" >c.log 2>&1
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

openssl_shakes_hands() {
	new_site t || return
	run 0 keys host --dir t node-b || return
	handshake -cert t/node-b.pem -key t/node-b.key
	says c.log "Verify return code: 0" && says c.log "TLSv1.3"
}

psktool_agrees() {
	rm -rf p && mkdir -m 700 p && run 0 keys psk --dir p node-a || return
	grep -qE '^node-a:[0-9a-f]{64}$' p/node-a.psk || return
	judged psktool -u node-b -p p/node-a.psk -s 32 && run 0 check-keys --tls-psk p/node-a.psk && says out "2 keys" &&
		run 1 check-keys --tls-psk p/node-a.psk --tls-psk-identity node-c && says out "no key of 'node-c'" &&
		run 0 check-keys --tls-psk p/node-a.psk --tls-psk-identity node-b
}

# What is on the command line, in output or in JSON has nothing of a key.
no_secret_is_shown() {
	rm -rf q && mkdir q || return
	local key
	run 0 keys psk --json --dir q node-a && cp out all && key=$(cut -d: -f2 q/node-a.psk) &&
		run 0 check-keys --json --tls-psk q/node-a.psk && cat out err >>all || return
	echo "node-b:${key}0" >>q/node-a.psk
	run 1 check-keys --tls-psk q/node-a.psk && cat out err >>all && ! grep -qi "${key:0:16}" all
}

wrong_files() {
	new_site f && files_of f && rm -rf g2 && mkdir g2 && run 0 keys ca --dir g2 "another CA" || return
	local key=f/node-a.example.key
	finds "is not the key of" DDPS_E_KEY_MISMATCH --tls-cert f/node-a.example.pem --tls-key f/ca.key --tls-ca f/ca.pem &&
		finds "expired on" DDPS_E_CERT_EXPIRED "${files[@]}" --days 100 &&
		finds "'key'" DDPS_E_CONFIG --tls-cert f/node-a.example.pem --tls-ca f/ca.pem &&
		finds "No such file" DDPS_E_CONFIG "${files[@]}" --tls-key f/none || return
	run 0 check-keys "${files[@]}" --tls-ca g2/ca.pem && says out warning && says out "is not from a CA of" || return
	run 0 check-keys "${files[@]}" --days 85 && says out "expires on" || return
	chmod 644 $key
	finds "chmod 600" DDPS_E_KEY_OPEN "${files[@]}" || return
	chmod 600 $key
	openssl pkey -in $key -aes128 -passout pass:x -out f/locked.key && chmod 600 f/locked.key &&
		finds "encrypted" DDPS_E_CONFIG "${files[@]}" --tls-key f/locked.key || return
	finds "f/ca.pem is a certificate, and a private key or pre-shared keys" DDPS_E_CONFIG --tls-psk f/ca.pem &&
		finds "f/ca.pem is a certificate" DDPS_E_CONFIG "${files[@]}" --tls-key f/ca.pem || return
	cp f/ca.pem f/shut.pem && chmod 600 f/shut.pem &&
		finds "line 1: this is PEM, no pre-shared keys" DDPS_E_CONFIG --tls-psk f/shut.pem || return
	cat $key f/ca.pem >f/both && chmod 644 f/both && finds "chmod 600" DDPS_E_KEY_OPEN "${files[@]}" --tls-key f/both || return
	mkfifo f/fifo && finds "a pipe" DDPS_E_CONFIG "${files[@]}" --tls-key f/fifo &&
		finds "a folder" DDPS_E_CONFIG "${files[@]}" --tls-ca f && finds "a device" DDPS_E_CONFIG "${files[@]}" --tls-key /dev/zero || return
	truncate -s 1T f/huge && finds "octets" DDPS_E_CONFIG "${files[@]}" --tls-ca f/huge &&
		finds "no certificate" DDPS_E_CONFIG "${files[@]}" --tls-cert f/node-a.example.key &&
		finds "no CA's" DDPS_E_CERT_USAGE "${files[@]}" --tls-ca f/node-a.example.pem
}

# Certificates that sessctl does not make, by certtool.
made_elsewhere() {
	new_site m && files_of m || return
	local key=m/x.key
	openssl genpkey -algorithm ED25519 -out $key 2>/dev/null && chmod 600 $key || return
	cert() { # TEMPLATE-LINE...
		printf '%s\n' "$@" >m/t && certtool --generate-certificate --template m/t --load-privkey $key \
			--load-ca-certificate m/ca.pem --load-ca-privkey m/ca.key --outfile m/x.pem >/dev/null 2>&1
	}
	files=(--tls-cert m/x.pem --tls-key "$key" --tls-ca m/ca.pem)
	cert cn=x dns_name=x.example signing_key tls_www_client tls_www_server expiration_days=30 &&
		run 0 check-keys "${files[@]}" && says out "dns:x.example" || return
	cert cn=x dns_name=x.example signing_key tls_www_server expiration_days=30 &&
		run 0 check-keys "${files[@]}" && says out "not for clients" || return
	cert cn=x dns_name=x.example signing_key tls_www_client tls_www_server 'activation_date="2040-01-01 00:00:00 UTC"' \
		'expiration_date="2041-01-01 00:00:00 UTC"' && finds "valid from 2040-01-01" DDPS_E_CERT_NOT_YET "${files[@]}" || return
	cert cn=x dns_name=x.example signing_key expiration_days=30 && printf 'crl_next_update = 3\ncrl_number = 1\n' >m/c &&
		certtool --generate-crl --load-ca-certificate m/ca.pem --load-ca-privkey m/ca.key --template m/c --load-certificate m/x.pem \
			--outfile m/crl.pem >/dev/null 2>&1 && finds "was revoked" DDPS_E_CERT_REVOKED "${files[@]}" --tls-crl m/crl.pem || return
	files_of m
	run 0 check-keys "${files[@]}" --tls-crl m/crl.pem && finds "was good until" DDPS_E_CRL "${files[@]}" --tls-crl m/crl.pem --days 5
}

# As somebody else: keys of others are not readable, and one of another user is refused by root.
other_users() {
	[ "$(id -u)" = 0 ] || {
		echo "skip this is not root: files of other users are not tried"
		return 0
	}
	new_site u && files_of u || return
	chown 12345 u/node-a.example.key
	finds "belongs to user 12345" DDPS_E_KEY_OPEN "${files[@]}" || return
	chown 0 u/node-a.example.key
	chmod 755 . u
	local status
	setpriv --reuid 65534 --clear-groups "$SESSCTL" check-keys "${files[@]}" >out 2>err
	status=$?
	[ "$status" = 1 ] && says out "Permission denied"
}

# In a namespace of users that maps none all have one number, and so the CA's key may be anybody's.
nobody_known() {
	unshare -U true 2>/dev/null || {
		echo "skip no namespace of users can be made: nobody is nobody there"
		return 0
	}
	rm -rf nk && mkdir nk && run 0 keys ca --dir nk || return
	unshare -U "$SESSCTL" keys host --dir nk node-a.example >out 2>err
	[ $? = 1 ] && says err "belongs to another user" && only nk ca.key ca.pem
}

one_settings_file() {
	new_site z || return
	printf '# ours\ncert node-a.example.pem\nkey node-a.example.key\nca ca.pem\npeers peers\nhosts hosts\npeer node-b.example\n' \
		>z/secure.conf
	printf 'deny dns node-z.example\nallow dns *.example.org\nallow uri-prefix spiffe://example/\n' >z/peers
	printf '192.0.2.1 node-b.example\n' >z/hosts
	run 0 check-keys z/secure.conf && says out "3 lines" || return
	run 0 check-keys --tls z/secure.conf && says out "3 lines" || return
	run 2 check-keys --tls z/secure.conf z/secure.conf && says err "give one" || return
	echo "allow cn x" >>z/peers
	finds "line 4" DDPS_E_CONFIG z/secure.conf && echo "certs x" >>z/secure.conf &&
		finds "line 8: there is no setting 'certs': there are stale-crl, cert, key, ca," DDPS_E_CONFIG z/secure.conf || return
	printf 'peer node-b.example\n' >z/secure.conf
	finds "names neither cert, key and ca, nor psk" DDPS_E_NO_CERT z/secure.conf || return
	files_of z
	for emptied in "" $'# ours\n'; do
		printf %s "$emptied" >z/secure.conf
		finds "z/secure.conf has no line that counts" DDPS_E_CONFIG "${files[@]}" z/secure.conf || return
	done
}

# The library of secured wires is not there: all else works, and it is said.
without_the_library() {
	local DDPSESS_TLS_LIBRARY=$work/none.so
	export DDPSESS_TLS_LIBRARY
	rm -rf l && mkdir l && run 1 keys ca --dir l && says err "libddpsess-tls.so cannot be loaded" && says err "GnuTLS" &&
		run 1 check-keys --json --tls-psk x && has out code DDPS_E_NO_TLS && run 0 keys psk --dir l x && run 0 --version &&
		only l x.psk
}

broken_output() {
	new_site bo && files_of bo || return
	"$SESSCTL" check-keys "${files[@]}" >/dev/full 2>err
	[ $? = 1 ] && says err "cannot write"
}

test_case "keys: three commands make what a site needs, for its owner only" three_commands
test_case "keys: a key is for its owner only from its first octet on" no_window
test_case "keys: nothing is overwritten, and it is all or nothing" never_overwrites
test_case "keys: links, pipes and folders at the name, and names with slashes" hostile_names
test_case "keys: names that no host has" bad_names
test_case "keys: a CA that cannot sign" a_ca_that_cannot_sign
test_case "check-keys: the folder of a log of keys" keylog_folder
test_case "keys: a certificate ends with its CA" ends_with_its_ca
test_case "keys: OpenSSL takes what is made, for these names only" openssl_judges
test_case "keys: certtool takes what is made" certtool_judges
test_case "keys: OpenSSL shakes hands with it, both sides with certificates" openssl_shakes_hands
test_case "keys: psktool and sessctl write the same file" psktool_agrees
test_case "keys: no secret is shown" no_secret_is_shown
test_case "check-keys: each wrong file has its code and its sentence" wrong_files
test_case "check-keys: certificates of certtool" made_elsewhere
test_case "check-keys: files of other users" other_users
test_case "keys: a CA's key of one of many users with one number" nobody_known
test_case "check-keys: one settings file" one_settings_file
test_case "check-keys: without the library of secured wires" without_the_library
test_case "check-keys: a full disk is reported" broken_output
finish
