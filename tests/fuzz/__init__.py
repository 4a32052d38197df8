"""A fuzzer of everything that irexec reads: ``python -m tests.fuzz --target xml --cases 1000``; docs/development/fuzzing.md describes it."""
