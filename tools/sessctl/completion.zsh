#compdef sessctl
# SPDX-License-Identifier: BSD-2-Clause
# zsh completion of sessctl, which knows itself what to offer.

_sessctl() {
	local -a rows kinds
	local row

	for row in "${(@f)$($words[1] complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
		case $row in
		:*) kinds+=("$row") ;;
		*://*) compadd -S '' -- "${row%%$'\t'*}" ;;
		?*) rows+=("${row/$'\t'/:}") ;;
		esac
	done
	(($#rows)) && _describe candidate rows
	(($#kinds)) && compset -P '--*='
	for row in $kinds; do
		case $row in
		:files) _files ;;
		:folders) _files -/ ;;
		:commands) _command_names -e ;;
		esac
	done
}

_sessctl "$@"
