"""Tests of `pullback.compile`: traces, programs, loops in C."""
