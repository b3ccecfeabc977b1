package run

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
)

// manages adds what the scripts do that a framework puts into each project, as far as
// their words are the same everywhere: they run as code of the workspace, but they are
// also the short way to an empty database.
func manages(s *step) {
	for i := 0; i+1 < len(s.argv); i++ {
		if i > 0 && s.Call.Tool != "python" && s.Call.Tool != "php" {
			return
		}
		if resets(filepath.Base(s.argv[i]), s.argv[i+1]) {
			s.Call.Effects[atip.Destructive] = atip.Fact{Value: atip.Yes, Source: "script " + s.argv[i], Rank: atip.Vendor}
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
