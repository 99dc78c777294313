"""Tests made from the table of operations: every entry, on the samples that it carries."""
