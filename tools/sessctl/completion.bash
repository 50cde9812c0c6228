# SPDX-License-Identifier: BSD-2-Clause
# bash completion of sessctl; commands and options come from its own help.
# shellcheck shell=bash

_sessctl_value() { # OPTION WORD: candidates for the option's value
	local list="" i
	case $1 in
	--ird | --ord) list="ulp" ;;
	--transport) list="tcp sctp" ;;
	--face) list="iwarp roce" ;;
	--no-recv) list="stall strict" ;;
	--mode)
		list="preload soname"
		[[ ${COMP_WORDS[1]} == ipoib ]] && list="rc uc rc,uc ud"
		;;
	--crc | --markers | --view) list="on off" ;;
	--op)
		list="send write read"
		[[ ${COMP_WORDS[1]} == perf ]] && list+=" ping"
		;;
	--port) list="umad soft rdmacm ib" ;;
	--flags) list="rc uc ud rc,uc" ;;
	--rtr)
		local head=${2%"${2##*,}"}
		for i in send write read; do list+="$head$i "; done
		;;
	--profile)
		list="siw usrsctp linux-sctp"
		[[ ${COMP_WORDS[1]} == ipoib ]] && list="linux-ib_ipoib"
		;;
	--self)
		[[ ${COMP_WORDS[1]} == ipoib ]] || return 1
		list="ours illumos letter"
		;;
	--dir)
		mapfile -t COMPREPLY < <(compgen -d -- "$2")
		return 0
		;;
	--capture | --plot | --tls | --ca | --ca-key | --tls-cert | --tls-key | --tls-ca | --tls-crl | --tls-psk | \
		--tls-peers | --tls-hosts)
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
		return 0
		;;
	--private-data)
		[[ $2 == @* ]] && mapfile -t COMPREPLY < <(compgen -f -P @ -- "${2#@}")
		return 0
		;;
	--days | --tls-psk-identity | --tls-peer | --max-size | --stat | --count | --size | --interval | --timeout | --seconds | --depth | --qpn | --mtu | \
		--gid | --decode | --peer-qpn | --set | --device-name | --retry | --hold | --reject | \
		--case | --then | --seed | --nodes | --loss | --tun | --udp | --multicast | --listen | \
		--peer | --ip | --ip6 | --sa | --link-mtu | --qkey | --lifetime | --pkey | --partition)
		return 0
		;;
	*) return 1 ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$list" -- "$2")
}

_sessctl_commands() { # HELP... : what a help lists under "Commands:"
	COLUMNS=9999 "$@" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'
}

_sessctl_takes_uri() { # COMMAND
	[[ " listen connect put get ping perf conform stat top " == *" $1 "* ]]
}

_sessctl() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=("${COMP_WORDS[1]}") list

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		list=$(_sessctl_commands "$1")
		mapfile -t COMPREPLY < <(compgen -W "$list --help --version" -- "$word")
		return
	fi
	if [[ ${command[0]} == ipoib || ${command[0]} == keys ]]; then
		if ((COMP_CWORD == 2)); then
			list=$(_sessctl_commands "$1" "${command[0]}")
			mapfile -t COMPREPLY < <(compgen -W "$list --help" -- "$word")
			return
		fi
		command+=("${COMP_WORDS[2]}")
	fi
	_sessctl_value "$before" "$word" && return
	if [[ ${command[0]} == run && $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word")
	elif [[ $word == -* ]]; then
		list=$(COLUMNS=9999 "$1" "${command[@]}" --help 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
	elif [[ $word == t* || $word == s* ]] && _sessctl_takes_uri "${command[0]}"; then
		compopt -o nospace
		mapfile -t COMPREPLY < <(compgen -W "tcp:// sctp://" -- "$word")
	elif [[ ${command[*]} == "ipoib bridge" ]]; then
		mapfile -t COMPREPLY < <(compgen -W "up status down" -- "$word")
	elif [[ ${command[0]} == put || ${command[0]} == get || ${command[0]} == check-keys || ${command[*]} == "ipoib mad" || ${command[*]} == "ipoib sim" ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
}

complete -o filenames -F _sessctl sessctl
