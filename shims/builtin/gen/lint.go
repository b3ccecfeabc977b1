package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// command is a node of a document, as far as lint looks at it.
type command struct {
	Effects       map[string]json.RawMessage `json:"effects"`
	Options       []option                   `json:"options"`
	GlobalOptions []option                   `json:"globalOptions"`
	Commands      map[string]command         `json:"commands"`
}

type option struct {
	Flags []string `json:"flags"`
}

// lint finds what is well-formed and still cannot be meant. Its codes are those
// of "atip lint".
func lint(raw []byte) ([]string, error) {
	var root command
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, err
	}
	var found []string
	root.lint("", nil, func(code, path, msg string) { found = append(found, code+" "+path+": "+msg) })
	return found, nil
}

func (c command) lint(path string, inherited map[string]json.RawMessage, report func(code, path, msg string)) {
	effects := maps.Clone(inherited)
	if effects == nil {
		effects = map[string]json.RawMessage{}
	}
	maps.Copy(effects, c.Effects)
	stated := func(key, value string) bool { return string(effects[key]) == value }
	if len(c.Commands) == 0 && len(effects) == 0 {
		report("L01", path, "a command without effects")
	}
	if stated("destructive", "true") && stated("reversible", "true") {
		report("L04", path, "destructive, yet reversible")
	}
	if d := effects["deletes"]; len(d) > len("[]") && !stated("destructive", "true") {
		report("L05", path, "deletes something, but is not destructive")
	}
	var flags []string
	for _, o := range append(slices.Clone(c.Options), c.GlobalOptions...) {
		flags = append(flags, o.Flags...)
	}
	slices.Sort(flags)
	for i := 1; i < len(flags); i++ {
		if flags[i] == flags[i-1] {
			report("L06", path, "flag "+flags[i]+" is declared twice")
		}
	}
	if path == "" {
		effects = nil // what the root states is joined, not inherited
	}
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		c.Commands[name].lint(strings.TrimPrefix(path+" "+name, " "), effects, report)
	}
}

// manifests are the files of a project that are programs, and which tools read them. It is kept
// apart from the documents so that one which forgets its own is found.
var manifests = map[string][]string{
	"mix.exs": {"mix"}, "rebar.config.script": {"rebar3"}, "project.clj": {"lein"},
	"Gemfile": {"bundle"}, "*.gemspec": {"bundle"}, "Podfile": {"pod"}, "*.podspec": {"pod"}, "Vagrantfile": {"vagrant"}, "Fastfile": {"fastlane"},
	"serverless.ts": {"serverless"}, "serverless.yml": {"serverless"}, "prisma.config.*": {"prisma"}, "drizzle.config.*": {"drizzle-kit"}, "hardhat.config.*": {"hardhat"}, "knexfile.*": {"knex"},
	"app.config.*": {"expo", "eas"}, "vercel.ts": {"vercel"}, ".ncurc.cjs": {"npm-check-updates"}, ".pnpmfile.cjs": {"pnpm"}, "yarn.config.cjs": {"yarn"}, "vitest.config.*": {"vitest"}, "cdk.json": {"cdk"},
	"build.gradle": {"gradle"}, "build.gradle.kts": {"gradle"}, "*.csproj": {"dotnet"}, "Package.swift": {"swift"}, "*.nimble": {"nimble"}, "flake.nix": {"nix"}, "Tiltfile": {"tilt"}, "helmfile.yaml": {"helmfile"},
	".hg/hgrc": {"hg"}, ".jj/repo/config.toml": {"jj"}, ".dvc/config": {"dvc"}, ".git/config": {"git"}, "ansible.cfg": {"ansible-galaxy"}, "dags": {"airflow"}, "scrapy.cfg": {"scrapy"},
	".poetry": {"poetry"}, ".pdm-plugins": {"pdm"},
}

var kubeconfigClause = regexp.MustCompile(`"anyOption":\s*\[[^\]]*"--kubeconfig"`)

// lintManifests reports a networked document that does not state the programs among the files
// of a project which its tool reads, and one that takes a kubeconfig without saying that this
// names a program.
func lintManifests(name string, raw []byte) []string {
	if !bytes.Contains(raw, []byte(`"network": true`)) && !bytes.Contains(raw, []byte(`"network":true`)) {
		return nil
	}
	var doc struct {
		command
		Ext struct {
			Files []struct{ Path string } `json:"files"`
		} `json:"x-atip-effects"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, path := range slices.Sorted(maps.Keys(manifests)) {
		if slices.Contains(manifests[path], name) && !slices.ContainsFunc(doc.Ext.Files, func(f struct{ Path string }) bool { return f.Path == path }) {
			found = append(found, "L12 /x-atip-effects/files: "+path+" is a program that the tool reads, and it has network")
		}
	}
	takes := func(o option) bool { return slices.Contains(o.Flags, "--kubeconfig") }
	if slices.ContainsFunc(append(doc.Options, doc.GlobalOptions...), takes) && !kubeconfigClause.Match(raw) {
		found = append(found, "L12 /x-atip-effects/when: a kubeconfig names programs, and no clause says so of --kubeconfig")
	}
	return found
}
