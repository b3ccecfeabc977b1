# Shared by the scripts of this folder; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*"; }
die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# need_go stops early with a clear text: everything else can be installed.
need_go() {
	command -v go >/dev/null || die "no Go toolchain in PATH; install Go 1.26 or newer from https://go.dev/dl/"
}

# install_missing PROGRAM=PACKAGE… installs the packages whose program is missing.
install_missing() {
	local pair packages=()
	for pair in "$@"; do
		command -v "${pair%%=*}" >/dev/null || packages+=("${pair#*=}")
	done
	[ ${#packages[@]} -eq 0 ] && return
	install_packages "${packages[@]}"
}

install_packages() {
	command -v apt-get >/dev/null || die "please install: $*"
	local sudo=()
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null || die "please install as root: apt-get install $*"
		sudo=(sudo)
	fi
	say "installing $*"
	"${sudo[@]}" apt-get update -qq
	DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# any_home DIR prints the flag that builds programs for which HOME counts, as it does where an
# administrator lists directories for it (docs/sandbox.md); the list lies in DIR. As in a release they
# hold no tables for debuggers, which take a third of the time to link.
any_home() {
	echo / >"$1/homes"
	printf '%s' "-ldflags=-s -w -X github.com/atip-dev/atip-exec/internal/place.homesFile=$1/homes"
}

# build puts both programs into bin/; neither needs a C compiler.
build() {
	(cd "$root" && CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...)
}
