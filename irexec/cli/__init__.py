"""The command line: one module for each command, which parses options, calls one tool and shows its result."""
