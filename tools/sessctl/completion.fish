# SPDX-License-Identifier: BSD-2-Clause
# fish completion of sessctl, which knows itself what to offer.

function __sessctl_complete
    set -l word (commandline -ct)
    for row in (sessctl complete (commandline -opc)[2..-1] "$word" 2>/dev/null)
        switch $row
            case :files
                __fish_complete_path "$word"
            case :folders
                __fish_complete_directories "$word"
            case :commands
                __fish_complete_command
            case '*'
                echo $row
        end
    end
end

complete -c sessctl -f -a '(__sessctl_complete)'
