// Package owner tells whether a file is root's, also where root cannot be seen.
package owner
