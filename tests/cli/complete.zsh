# SPDX-License-Identifier: BSD-2-Clause
# What a line becomes when Tab is pressed behind it in an interactive zsh.
# usage: zsh -f complete.zsh DIRECTORY-OF-_sessctl LINE
zmodload zsh/zpty || exit 1
zpty shell zsh -f -i
zpty -w shell "PS1= RPS1= PS2= PROMPT_EOL_MARK=; setopt no_beep; fpath=($1 \$fpath)
autoload -U compinit; compinit -u -D
show() { print -r -- \"=\$BUFFER=\"; BUFFER= }; zle -N show; bindkey '^X' show; print rea''dy"
zpty -r -m shell seen '*ready*' || exit 1
zpty -n -w shell "$2"$'\t\x18'
zpty -r -m shell seen '*=*=*' || exit 1
seen=${seen%=*}
print -r -- "${seen##*=}"
