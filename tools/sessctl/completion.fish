# SPDX-License-Identifier: BSD-2-Clause
# fish completion of sessctl; commands and options come from its own help.

function __sessctl_commands
    env COLUMNS=9999 sessctl $argv --help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*)(?: [^ ]+)*  +(.*)' '$1\t$2'
end

# The words of the command, without options.
function __sessctl_words
    string match -v -- '-*' (commandline -opc)[2..-1]
end

function __sessctl_options
    set -l words (__sessctl_words)
    set -l command $words[1]
    contains -- "$command" ipoib keys; and set command $words[1..2]
    env COLUMNS=9999 sessctl $command --help 2>/dev/null | string replace -rf '^  (--[a-z0-9-]+)(?: [^ ]+)?(?:  *(.*))?' '$1\t$2'
end

function __sessctl_at # N: so many words are there
    test (count (__sessctl_words)) = $argv[1]
end

function __sessctl_is
    contains -- (__sessctl_words)[1] $argv
end

complete -c sessctl -f -n '__sessctl_at 0' -a '(__sessctl_commands)'
complete -c sessctl -f -n '__sessctl_is ipoib; and __sessctl_at 1' -a '(__sessctl_commands ipoib)'
complete -c sessctl -f -n '__sessctl_is keys; and __sessctl_at 1' -a '(__sessctl_commands keys)'
complete -c sessctl -n 'not __sessctl_at 0; and string match -q -- "-*" (commandline -ct)' -f -a '(__sessctl_options)'
complete -c sessctl -f -n '__sessctl_is listen connect ping perf conform stat top' -a 'tcp:// sctp://'
complete -c sessctl -n '__sessctl_is put get' -a 'tcp:// sctp://'
complete -c sessctl -n '__sessctl_is run; and __sessctl_at 1' -f -a '(__fish_complete_command)'
