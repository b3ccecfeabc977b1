package approvals

import (
	"errors"
	"os"
)

// flush is not known here; nothing is asked where an old key could answer.
func flush(*os.File) error { return errors.New("type-ahead cannot be thrown away here") }
