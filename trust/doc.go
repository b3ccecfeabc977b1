// Package trust finds the executable file a word names, identifies it by content,
// holds it so that what was identified is what runs, and decides how far it is
// believed. It never starts anything and never opens a network connection.
package trust
