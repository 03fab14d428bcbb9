#!/bin/sh
# Build the image with buildah, by root or by anybody with subordinate ids: make image.
# Where no container registry can be reached the base is made of Debian's packages: BASE=debian.
set -eu
cd "$(dirname "$0")/.."
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
revision=$(git rev-parse HEAD 2>/dev/null || true)
set -- --file deploy/Dockerfile --tag sitemapd:local --build-arg "VERSION=$version" \
  --build-arg "REVISION=$revision" "$@"
# Make the image $1 of these packages, unless it is there.
debian() {
  if buildah inspect --type image "$1" >/dev/null 2>&1; then return; fi
  tar=$(mktemp --suffix .tar)
  trap 'rm -f "$tar"' EXIT
  mmdebstrap --variant=minbase --include="$2" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    trixie "$tar"
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$tar" /
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
  buildah commit --quiet --rm "$container" "$1"
}

if [ "${BASE:-}" = debian ]; then
  base=localhost/sitemapd-base:trixie
  runtime=localhost/sitemapd-runtime:trixie
  debian $base python3,python3-venv,python3-pip,python-is-python3,ca-certificates
  debian $runtime python3,python-is-python3,ca-certificates
  set -- --pull-never --build-arg "BASE=$base" --build-arg "RUNTIME=$runtime" "$@"
fi
# Of the format docker: the other has no HEALTHCHECK.
exec buildah build --format docker --network host "$@" .
