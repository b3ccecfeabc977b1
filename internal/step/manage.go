package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// Manages adds what the scripts do that a framework puts into each project, as far as
// their words are the same everywhere: they run as code of the workspace, but they are
// also the short way to an empty database.
func Manages(s *Step) {
	for i := 0; i+1 < len(s.Argv); i++ {
		if i > 0 && s.Call.Tool != "python" && s.Call.Tool != "php" {
			return
		}
		if resets(filepath.Base(s.Argv[i]), s.Argv[i+1]) || shells(filepath.Base(s.Argv[i]), s.Argv[i+1]) && slices.ContainsFunc(s.Argv[i+2:], empties) {
			s.Call.Effects[atip.Destructive] = atip.Fact{Value: atip.Yes, Source: "script " + s.Argv[i], Rank: atip.Vendor}
		}
	}
}

func resets(script, word string) bool {
	switch script {
	case "manage.py": // Django
		return word == "flush" || word == "reset_db" || word == "reset_schema"
	case "artisan": // Laravel
		return word == "migrate:fresh" || word == "migrate:refresh" || word == "migrate:reset" || word == "db:wipe"
	case "console": // Symfony
		return word == "doctrine:database:drop" || word == "doctrine:schema:drop"
	}
	return false
}

// shells reports the verb that runs program text with the models of a project.
func shells(script, word string) bool {
	return script == "artisan" && word == "tinker" || script == "manage.py" && (word == "shell" || word == "shell_plus")
}

// empties reports program text with a call that removes rows or tables. Text that does
// so in another way is what any code of the workspace may do.
func empties(text string) bool {
	for _, sign := range [...]string{"truncate(", "::destroy(", "->delete(", ".delete(", "forceDelete(", "deleteAll(", "delete_all", "drop_all", "dropAllTables", "dropIfExists", "DROP ", "drop table", "TRUNCATE "} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
