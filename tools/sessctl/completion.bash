# SPDX-License-Identifier: BSD-2-Clause
# bash completion of sessctl, which knows itself what to offer.
# shellcheck shell=bash

_sessctl() {
	local word=${COMP_WORDS[COMP_CWORD]} line kind

	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		kind=
		case $line in
		:files) kind=-f ;;
		:folders) kind=-d ;;
		:commands) kind=-c ;;
		*://) compopt -o nospace ;;
		esac
		if [[ $kind ]]; then
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen "$kind" -- "$word")
		else
			COMPREPLY+=("$line")
		fi
	done < <("$1" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -o filenames -F _sessctl sessctl
