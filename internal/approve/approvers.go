package approve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// approversFile is the list that `atip approve --init` keeps beside the user's policy.
type approversFile struct {
	V         int            `json:"v"`
	Approvers []approverLine `json:"approvers"`
}

type approverLine struct {
	ID    string `json:"id"`
	Key   string `json:"key"`
	Level int    `json:"level"`
}

// ReadApprovers reads a list of approvers; a file that is not there is an empty one.
// A file of one user's cannot claim that its keys are kept by another (level 2); a
// key on a security key proves itself.
func ReadApprovers(file string) ([]Approver, error) {
	list, err := readApprovers(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Unreliable(file, err)
	}
	var out []Approver
	for _, a := range list.Approvers {
		out = append(out, Approver{ID: a.ID, Key: a.Key, Level: UserLevel(a.Key, a.Level)})
	}
	return out, nil
}

// UserLevel bounds the level of a key that a user's own file names.
func UserLevel(key string, level int) int {
	if strings.HasPrefix(key, keyHardware+" ") {
		return min(level, 3)
	}
	return min(level, 1)
}

func readApprovers(file string) (approversFile, error) {
	var list approversFile
	f, err := openOurs(file)
	if err != nil {
		return list, err
	}
	defer f.Close()
	if err := private(filepath.Dir(file)); err != nil {
		return list, fmt.Errorf("its directory: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return list, err
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return list, err
	}
	if list.V != 1 {
		return list, fmt.Errorf("version %d", list.V)
	}
	for _, a := range list.Approvers {
		if a.ID == "" || a.Level < 0 || a.Level > 3 {
			return list, fmt.Errorf("approver %q of level %d", a.ID, a.Level)
		}
		if _, err := keyBlob(a.Key); err != nil {
			return list, fmt.Errorf("approver %s: %w", a.ID, err)
		}
	}
	return list, nil
}

// AddApprover puts a key into the list. An id that is there already is refused: it
// would be unclear which of two keys a grant means.
func AddApprover(file string, a Approver) error {
	list, err := readApprovers(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Unreliable(file, err)
	}
	if _, err := keyBlob(a.Key); err != nil {
		return Unreliable(file, err)
	}
	if slices.ContainsFunc(list.Approvers, func(old approverLine) bool { return old.ID == a.ID }) {
		return Unreliable(file, fmt.Errorf("there is an approver %q already", a.ID))
	}
	list.V, list.Approvers = 1, append(list.Approvers, approverLine(a))
	raw, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return Unreliable(file, err)
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Unreliable(file, err)
	}
	return Replace(file, append(raw, '\n'))
}

// SameKey reports whether two authorized_keys lines hold the same key.
func SameKey(a, b string) bool {
	x, err := keyBlob(a)
	y, err2 := keyBlob(b)
	return err == nil && err2 == nil && string(x) == string(y)
}
