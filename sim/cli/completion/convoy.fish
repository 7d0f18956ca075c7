# SPDX-License-Identifier: MIT
# Completion of convoy's command line in fish. The program says what may come next (`convoy complete WORD...`).

function __convoy_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] complete $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$word"
            case :folders
                __fish_complete_directories "$word"
            case '*'
                echo $line
        end
    end
end

complete -c convoy -f -a '(__convoy_complete)'
