module github.com/atip-dev/atip-exec/scripts/crossvet

go 1.26.0

require (
	golang.org/x/sync v0.22.0
	golang.org/x/tools v0.47.0
)

require golang.org/x/mod v0.38.0 // indirect
