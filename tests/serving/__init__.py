"""A server with three models under load, by clients that exist: tritonclient over HTTP and gRPC, and curl.

``python -m tests.serving`` needs kserve, tritonclient and curl; it prints what it has seen, and its exit code is 1 where that is wrong.
"""
