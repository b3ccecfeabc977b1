package cli

//go:generate sh -c "cd ../.. && go run ./scripts/docgen"
