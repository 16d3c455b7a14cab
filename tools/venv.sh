#!/bin/sh
# Makes or renews the virtual environment: tools/venv.sh DIRECTORY STAMP
# Packages come from requirements/dev.txt with their hashes checked; the project itself is installed editable.
# The stamp is written last, so an interrupted run is done again.
set -eu
venv=$1 stamp=$2

fail() { echo "interlace: $*" >&2; exit 2; }

if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  python=
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
  done
  [ -n "$python" ] || fail "no Python >= 3.11 on PATH; install one (Debian, Ubuntu: apt install python3 python3-venv)"
  "$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "$(command -v "$python") has no venv module; install it (Debian, Ubuntu: apt install python3-venv)"
  echo "making $venv with $("$python" --version)"
  rm -rf "$venv"
  "$python" -m venv "$venv"
fi

pip() { "$venv/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
echo "installing requirements/dev.txt into $venv"
pip install --require-hashes --only-binary=:all: -r requirements/dev.txt ||
  fail "cannot install requirements/dev.txt into $venv; check the network and run the command again"
pip install --no-deps --no-build-isolation --editable . ||
  fail "cannot install the project itself into $venv; read what pip says above"
touch "$stamp"
