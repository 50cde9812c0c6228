# SPDX-License-Identifier: BSD-2-Clause
# bash completion of sessctl, which knows itself what to offer.
# shellcheck shell=bash

_sessctl() {
	local words=() word kept cut i line kind uri='' glued=''

	# bash has cut words in pieces at characters such as = and :, and puts what is offered behind the last one
	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ $word =~ ^[:=]+$ || $glued ]] && ((${#words[@]})); then
			words[-1]+=$word
		else
			words+=("$word")
		fi
		glued=
		[[ ! $word =~ ^[:=]+$ ]] || glued=yes
	done
	word=${words[-1]}
	cut=
	[[ ! $word =~ ^(.*[:=]) ]] || [[ $word = "${COMP_WORDS[COMP_CWORD]}" ]] || cut=${BASH_REMATCH[1]}
	kept=${word%"${word#--*=}"}
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		kind=
		case $line in
		:files) kind=-f ;;
		:folders) kind=-d ;;
		:commands) kind=-c ;;
		*://) uri=yes ;;
		esac
		if [[ $kind ]]; then
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -P "$kept" -- "${word#"$kept"}")
		else
			COMPREPLY+=("$line")
		fi
	done < <("$1" complete "${words[@]}" 2>/dev/null)
	COMPREPLY=("${COMPREPLY[@]#"$cut"}")
	# what is taken for a file gets a backslash in front of a colon
	if [[ $uri ]]; then
		compopt -o nospace
	else
		compopt -o filenames
	fi
}

complete -F _sessctl sessctl
