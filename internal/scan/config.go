// Package scan looks at the executables of a machine: which are safe to look at, what
// metadata they have, and, where that is allowed, what they say about themselves.
package scan

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config is config.json of the configuration directory.
type Config struct {
	Paths  []string      // directories beyond the usual ones
	Allow  []string      // names to look at, nothing else
	Skip   []string      // names to leave out
	Probe  string        // auto, listed, never
	MaxAge time.Duration // of what a tool said about itself
}

// ConfigError says that config.json cannot be used.
type ConfigError struct{ File, Msg string }

func (e *ConfigError) Error() string { return e.File + ": " + e.Msg }

// FaultCode implements fault.Coded.
func (e *ConfigError) FaultCode() string { return "E1103" }

// FaultDetails implements fault.Coded.
func (e *ConfigError) FaultDetails() map[string]any { return map[string]any{"file": e.File} }

const defaultMaxAge = 30 * 24 * time.Hour

// ReadConfig reads DIR/config.json; a missing file is the default.
func ReadConfig(dir string) (Config, error) {
	c := Config{Probe: "auto", MaxAge: defaultMaxAge}
	file := dir + "/config.json"
	raw, err := os.ReadFile(file)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, &ConfigError{file, err.Error()}
	}
	var doc struct {
		Scan struct {
			Paths, Allow, Skip []string
		}
		Probe        string
		NativeMaxAge string
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return c, &ConfigError{file, err.Error()}
	}
	c.Paths, c.Allow, c.Skip = doc.Scan.Paths, doc.Scan.Allow, doc.Scan.Skip
	switch doc.Probe {
	case "":
	case "auto", "listed", "never":
		c.Probe = doc.Probe
	default:
		return c, &ConfigError{file, "probe: " + strconv.Quote(doc.Probe) + " is not auto, listed or never"}
	}
	if doc.NativeMaxAge != "" {
		if c.MaxAge, err = Days(doc.NativeMaxAge); err != nil {
			return c, &ConfigError{file, "nativeMaxAge: " + err.Error()}
		}
	}
	return c, nil
}

// Days reads a duration such as 30d, 12h or 90m.
func Days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.Atoi(n)
		if err != nil || days < 0 || days > 3650 {
			return 0, errors.New(strconv.Quote(s) + " is not a number of days up to 3650d")
		}
		return time.Duration(days) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New(strconv.Quote(s) + " is not a duration such as 24h or 7d")
	}
	return d, nil
}
