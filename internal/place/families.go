package place

// PackageFamily is a family of tools that share caches.
type PackageFamily struct {
	Family string
	Tools  []string
	Files  []string // mark a package of it
}

// PackageFamilies are the families whose caches a run may use.
func PackageFamilies() []PackageFamily {
	return []PackageFamily{
		{"go", []string{"go", "gofmt"}, []string{"go.mod", "go.work"}},
		{"npm", []string{"npm", "npx", "pnpm", "yarn", "node"}, []string{"package.json"}},
		{"pip", []string{"pip", "pip3", "uv", "python", "python3"}, []string{"pyproject.toml", "requirements.txt"}},
		{"cargo", []string{"cargo", "rustc"}, []string{"Cargo.toml"}},
		{"maven", []string{"mvn"}, []string{"pom.xml"}},
		{"pre-commit", []string{"pre-commit", "prek"}, []string{".pre-commit-config.yaml"}},
	}
}
