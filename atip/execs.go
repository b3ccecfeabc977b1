package atip

import (
	"slices"
	"strings"
)

// badExec says why an entry of x-atip-execs is not one, "" if it is: a name that is looked
// up in PATH, an absolute path, or an absolute directory followed by "/**".
func badExec(entry string) string {
	dir, below := strings.CutSuffix(entry, "/**")
	switch {
	case entry == "":
		return "is empty"
	case strings.ContainsAny(dir, "*?[\x00"):
		return "has a wildcard other than a last /**"
	case !strings.HasPrefix(entry, "/") && (below || strings.Contains(entry, "/")):
		return "is a relative path"
	case strings.HasPrefix(entry, "/") && (dir == "" || dir == "/"):
		return "names the root directory"
	case entry == "." || entry == "..", strings.Contains(dir+"/", "/../"), strings.Contains(dir+"/", "/./"):
		return "leads through . or .."
	}
	return ""
}

// goodExecs lists the entries that are well-formed.
func goodExecs(v val) []string {
	names, _ := v.strings()
	return slices.DeleteFunc(names, func(name string) bool { return badExec(name) != "" })
}

// execs checks x-atip-execs. Of a list with an entry that is wrong the others count: less is
// started, never more.
func (c *validator) execs(v val, pointer string) {
	if _, ok := v.strings(); !ok {
		c.note(tolerated(), v, pointer, "type", "x-atip-execs is not an array of strings")
		return
	}
	v.items(func(i int, item val) {
		if why := badExec(item.str()); why != "" {
			c.note(tolerated(), item, pointer+"/"+itoa(i), "execs", quoteShort(item.str())+" "+why+": write a name, an absolute path or DIR/**")
		}
	})
}
