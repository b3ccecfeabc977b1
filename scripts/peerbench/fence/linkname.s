// Empty: with an assembly file in the package the compiler accepts a function without a body.
