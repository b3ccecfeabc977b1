package sandbox

import "sort"

// ActiveGitSetting returns the first setting, in the order of names, by which a git
// configuration can make git run a program or read from elsewhere, and "" if there
// is none. What cannot be read counts as such a setting.
func ActiveGitSetting(config string) string {
	keys, err := gitKeys(config)
	if err != nil {
		return "an unreadable " + err.Error()
	}
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for _, value := range keys[name] {
			if !inert(name, value) {
				return name
			}
		}
	}
	return ""
}
