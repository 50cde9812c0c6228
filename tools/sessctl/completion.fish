# SPDX-License-Identifier: BSD-2-Clause
# fish completion of sessctl, which knows itself what to offer.

function __sessctl_complete
    set -l word (commandline -ct)
    set -l head (string match -r -- '^--[^=]+=' "$word")
    set -l value (string replace -r -- '^--[^=]+=' '' "$word")
    for row in (sessctl complete (commandline -opc)[2..-1] "$word" 2>/dev/null)
        switch $row
            case :files
                __fish_complete_path "$value" | string replace -r -- '^' "$head"
            case :folders
                __fish_complete_directories "$value" | string replace -r -- '^' "$head"
            case :commands
                __fish_complete_command
            case '*'
                echo $row
        end
    end
end

complete -c sessctl -f -a '(__sessctl_complete)'
