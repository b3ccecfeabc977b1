package stdio

func readOnlyPipe(int) bool { return false }
