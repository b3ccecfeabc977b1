package shell

// Read reads a text.
func Read(text string, o Options) (*Script, error) {
	return nil, &SyntaxError{Msg: "it cannot be read"}
}
