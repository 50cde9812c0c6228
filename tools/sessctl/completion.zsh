#compdef sessctl
# SPDX-License-Identifier: BSD-2-Clause
# zsh completion of sessctl, which knows itself what to offer.

_sessctl() {
	local -a rows
	local row

	for row in "${(@f)$($words[1] complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
		case $row in
		:files) _files ;;
		:folders) _files -/ ;;
		:commands) _command_names -e ;;
		*://*) compadd -S '' -- "${row%%$'\t'*}" ;;
		?*) rows+=("${row/$'\t'/:}") ;;
		esac
	done
	(($#rows)) && _describe candidate rows
}

_sessctl "$@"
