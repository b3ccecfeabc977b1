module github.com/atip-dev/atip-exec/scripts/peerbench/fence

go 1.26.0

require github.com/Use-Tusk/fence v0.1.5

require (
	github.com/bmatcuk/doublestar/v4 v4.9.1 // indirect
	github.com/things-go/go-socks5 v0.0.5 // indirect
	golang.org/x/sys v0.39.0 // indirect
)
