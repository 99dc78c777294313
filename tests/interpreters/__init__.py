"""Tests of what holds of all programs, whatever transforms read them."""
