package status

import "os"

func writable(*os.File) bool { return true }
