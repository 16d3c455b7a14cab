#!/bin/sh
# Writes requirements/dev.txt, testbed/mods/toolchain.txt and then requirements/wheels.toml anew:
#   tools/lock.sh PYTHON [uv options, e.g. --upgrade]
# The resolver (uv) is kept apart, in build/, since nothing else needs its 60 MB.
set -eu
python=$1; shift
uv=build/uv/bin/uv
[ -x "$uv" ] || "$python" -m pip --disable-pip-version-check --quiet install --target build/uv 'uv>=0.9'
compile() {
  "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url "$@"
}
compile pyproject.toml --extra sim --extra gke --extra report --extra webhook --group dev --output-file requirements/dev.txt "$@"
compile testbed/mods/toolchain.in --output-file testbed/mods/toolchain.txt "$@"
"$python" -m tools.wheels
