#compdef sessctl
# SPDX-License-Identifier: BSD-2-Clause
# zsh completion of sessctl; commands and options come from its own help.

_sessctl_rows() { # HELP...: "name:what it does" of what a help lists under "Commands:"
	env COLUMNS=9999 "$@" --help 2>/dev/null |
		sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\)[^ ]*\( [A-Z[][^ ]*\)*  *\(.*\)/\1:\3/p'
}

_sessctl() {
	local -a command options rows
	local row

	command=($words[1] $words[2])
	if ((CURRENT == 2)); then
		rows=("${(@f)$(_sessctl_rows $words[1])}")
		_describe command rows
		return
	fi
	if [[ $words[2] == ipoib || $words[2] == keys ]]; then
		if ((CURRENT == 3)); then
			rows=("${(@f)$(_sessctl_rows $words[1] $words[2])}")
			_describe command rows
			return
		fi
		command+=($words[3])
	fi
	if [[ $PREFIX == -* ]]; then
		options=("${(@f)$(env COLUMNS=9999 $command --help 2>/dev/null |
			sed -n 's/^  \(--[a-z0-9-]*\)\( [^ ]*\)\{0,1\}  *\(.*\)/\1:\3/p')}")
		_describe option options
		return
	fi
	case $words[2] in
	listen | connect | ping | perf | conform | stat | top) compadd -S '' -- tcp:// sctp:// ;;
	put | get) _files; compadd -S '' -- tcp:// sctp:// ;;
	run) _normal ;;
	*) _files ;;
	esac
}

_sessctl "$@"
