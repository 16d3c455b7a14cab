#!/bin/sh
# Installs what the test tiers `node` and `browser` need of a Debian or Ubuntu system, if something is missing: tools/system.sh
# Everything else that `make test` needs it makes itself.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

missing() {
  for program in gcc pkg-config unshare nsenter mount ip chromium; do
    has "$program" || echo "$program"
  done
  if has pkg-config; then pkg-config --exists libseccomp || echo libseccomp-dev; fi
}

lacking=$(missing | tr '\n' ' ')
[ -n "$lacking" ] || exit 0
packages='gcc pkg-config libseccomp-dev util-linux mount iproute2 chromium'
if [ "$(id -u)" != 0 ] || ! has apt-get; then
  echo "interlace: missing: $lacking; install them as root (Debian, Ubuntu: apt-get install $packages)" >&2
  exit 2
fi
echo "installing what is missing: $lacking"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -qq -y --no-install-recommends $packages >/dev/null
lacking=$(missing | tr '\n' ' ')
if [ -n "$lacking" ]; then echo "interlace: still missing after the installation: $lacking" >&2; exit 2; fi
