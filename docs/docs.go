// Package docs holds the documents of this directory, of which atip makes manual pages.
package docs

import "embed"

// Files are the documents, by their names.
//
//go:embed *.md
var Files embed.FS
