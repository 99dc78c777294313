"""Tests of what tests: the audit of a Function, `assert_close`, `make_tensor`."""
