// Command reportlook makes audit logs of invented runs, and looks at the page that is made
// of one in a headless browser. scripts/report-look calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	records := flag.Int("make", 0, "append this many records to the log in -log")
	log := flag.String("log", "", "directory of the log to make")
	page := flag.String("look", "", "page to look at")
	rows := flag.Int("rows", 0, "rows that the page must have")
	broken := flag.Bool("broken", false, "the page must say that the chain is broken")
	out := flag.String("out", "", "beginning of the names of pictures and DOM")
	browser := flag.String("browser", "chromium", "the browser")
	flag.Parse()
	var err error
	switch {
	case *records > 0 && *log != "":
		err = invent(*log, *records)
	case *page != "" && *out != "":
		err = look(*browser, *page, *out, *rows, *broken)
	default:
		err = errors.New("say -make N -log DIR, or -look PAGE -rows N -out NAME")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reportlook:", err)
		os.Exit(1)
	}
}
