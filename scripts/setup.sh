# SPDX-License-Identifier: MIT
# Sourced by the other scripts: installs what is missing and builds. Talks to stderr only.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# ensure_packages NAME...: installs those Debian packages that are not there. Asks for root only when one is missing.
ensure_packages() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake names what it misses
  local missing=() installed name
  # dpkg-query fails where it does not know one of the names.
  installed=" $({ dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null || true; } | sed -n 's/^ii *//p' | tr '\n' ' ')"
  for name in "$@"; do
    [[ $installed == *" $name "* ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "convoy: these packages are missing, and there is no sudo to install them: ${missing[*]}" >&2
      echo "convoy: as root: apt-get install --no-install-recommends ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "convoy: installing ${missing[*]}" >&2
  {
    "${as_root[@]}" apt-get update -q &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
  } >&2 || {
    echo "convoy: apt-get could not install ${missing[*]}" >&2
    exit 2
  }
}

# install_packages: all that building convoy and its tests needs.
install_packages() {
  local packages
  mapfile -t packages < <(grep -v '^#' "$root/scripts/packages.txt")
  ensure_packages "${packages[@]}"
}

# build_convoy [TARGET...]: configures the release preset where that is new or stale and builds (default: everything).
build_convoy() {
  local build=$root/build quiet=(--quiet) targets=()
  (($#)) && targets=(--target "$@")
  install_packages
  # A tree that was copied or moved here carries the paths of its old place.
  if ! grep -qsFx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$build/CMakeCache.txt"; then
    [[ -e $build ]] && rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
    echo "convoy: first build, a few minutes on two cores" >&2
    quiet=()
  fi
  if [[ ! -e $build/build.ninja || $root/CMakePresets.json -nt $build/build.ninja || ${#quiet[@]} -eq 0 ]]; then
    (cd "$root" && cmake --preset release) >&2
  fi
  # Ninja alone would run two compilers more than there are cores, which slow one another down.
  cmake --build "$build" --parallel "$(nproc)" "${targets[@]}" -- "${quiet[@]}" >&2
}
