"""What the command line asks for: options, columns, outputs, problem files."""
