//go:build !unix

package install

func lock(string) (unlock func(), same bool, err error) { return func() {}, true, nil }
