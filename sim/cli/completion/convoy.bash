# SPDX-License-Identifier: MIT
# Completion of convoy's command line in bash. The program says what may come next (`convoy complete WORD...`).

_convoy() {
  local line=${COMP_LINE:0:COMP_POINT} words word head candidate candidates
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  word=${words[-1]}
  COMPREPLY=()
  mapfile -t candidates < <("${words[0]/#\~/$HOME}" complete "${words[@]:1}" 2>/dev/null)
  for candidate in "${candidates[@]}"; do
    case $candidate in
      :files) compopt -o filenames 2>/dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") ;;
      :folders) compopt -o filenames 2>/dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$word") ;;
      *) COMPREPLY+=("${candidate%%$'\t'*}") ;;
    esac
  done
  # Of one candidate that is the beginning of a word the rest is typed behind it.
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace 2>/dev/null
  # Readline puts the candidate in place of what stands behind the last of these.
  head=${word%"${word##*[=:]}"}
  COMPREPLY=("${COMPREPLY[@]#"$head"}")
}

complete -F _convoy convoy
