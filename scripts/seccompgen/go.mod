module github.com/atip-dev/atip-exec/scripts/seccompgen

go 1.26.0

require github.com/seccomp/libseccomp-golang v0.11.1

require github.com/atip-dev/atip-exec v0.0.0

require (
	github.com/landlock-lsm/go-landlock v0.11.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.77 // indirect
)

replace github.com/atip-dev/atip-exec => ../..
