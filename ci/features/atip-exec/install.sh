#!/bin/sh
# Installs the programs of one release. Nothing of the archive is unpacked or run before its
# digest has been compared with the one that the caller names.
#
#   VERSION  the release, such as 1.2.0
#   SHA256   digest of atip-exec_VERSION_linux_ARCH.tar.gz; one for each architecture, separated by blanks
#   FROM     https:// or file:/// URL of the directory that holds the archive (default: the release on GitHub)
#   PREFIX   the programs go to PREFIX/bin (default /usr/local)
set -eu

die() {
	[ "${GITHUB_ACTIONS:-}" != true ] || echo "::error title=atip-exec was not installed::$*"
	echo "atip-exec was not installed: $*" >&2
	exit 1
}

case ${VERSION:-} in
'' | *[!0-9A-Za-z.+-]*) die "version: \"${VERSION:-}\" is not a release; name one, such as 1.2.0" ;;
esac
[ -n "${SHA256:-}" ] || die "sha256 is empty; take the digest of the archive from SHA256SUMS of the release"
for want in $SHA256; do
	case $want in
	*[!0-9a-f]*) die "sha256: \"$want\" is not a digest; write 64 characters of 0-9 and a-f" ;;
	esac
	[ ${#want} -eq 64 ] || die "sha256: \"$want\" has ${#want} characters; a digest has 64"
done
[ "$(uname -s)" = Linux ] || die "this system is $(uname -s); only Linux can confine commands"
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) die "there is no release for $(uname -m)" ;;
esac

name=atip-exec_${VERSION}_linux_$arch
from=${FROM:-https://github.com/atip-dev/atip-exec/releases/download/v$VERSION}
bin=${PREFIX:-/usr/local}/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=$work/$name.tar.gz
case $from in
file:///*) cp -- "${from#file://}/$name.tar.gz" "$archive" || die "$from has no $name.tar.gz" ;;
https://*)
	if command -v curl >/dev/null; then
		curl -fsSL --proto '=https' --proto-redir '=https' --retry 3 -o "$archive" "$from/$name.tar.gz" || die "cannot fetch $from/$name.tar.gz"
	elif command -v wget >/dev/null; then
		wget -q -O "$archive" "$from/$name.tar.gz" || die "cannot fetch $from/$name.tar.gz"
	else
		die "neither curl nor wget is in PATH; install one"
	fi
	;;
*) die "from: \"$from\" must begin with https:// or file:///" ;;
esac

got=$(sha256sum "$archive") || die "cannot compute the digest of $name.tar.gz"
got=${got%% *}
case " $SHA256 " in
*" $got "*) ;;
*) die "$name.tar.gz has the digest $got, which sha256 does not list; compare with SHA256SUMS of the release" ;;
esac

tar -xzf "$archive" -C "$work" "$name/atip-verify" "$name/atip" "$name/atip-exec" || die "cannot unpack $name.tar.gz"
mkdir -p "$bin"
# atip-exec comes last: where it is, the others are.
for program in atip-verify atip atip-exec; do
	cp "$work/$name/$program" "$bin/.$program.new"
	chmod 0755 "$bin/.$program.new"
	mv -f "$bin/.$program.new" "$bin/$program"
done
"$bin/atip-exec" version -o text || die "$bin/atip-exec does not start"
