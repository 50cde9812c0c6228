# SPDX-License-Identifier: BSD-2-Clause
# What a line becomes when Tab is pressed behind it in an interactive zsh or bash.
# usage: zsh -f complete.zsh zsh|bash FOLDER-OF-_sessctl|COMPLETION-FILE LINE
zmodload zsh/zpty || exit 1
case $1 in
zsh)
	zpty shell zsh -f -i
	zpty -w shell "PS1= RPS1= PS2= PROMPT_EOL_MARK=; setopt no_beep; fpath=($2 \$fpath)
autoload -U compinit; compinit -u -D
show() { print -r -- \"@\$BUFFER@\"; BUFFER= }; zle -N show; bindkey '^T' show; print rea''dy"
	;;
bash)
	zpty shell env TERM=dumb bash --norc --noprofile -i
	zpty -w shell "PS1= PS2=; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; . '$2'
show() { printf '\\n@%s@\\n' \"\$READLINE_LINE\"; READLINE_LINE=; }; bind -x '\"\\C-t\": show'; echo rea''dy"
	;;
esac
zpty -r -m shell seen '*ready*' || exit 1
zpty -n -w shell "$3"$'\t\x14'
zpty -r -m shell seen '*@*@*' || exit 1
seen=${seen%@*}
print -r -- "${seen##*@}"
