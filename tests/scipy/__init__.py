"""Tests of `pullback.scipy`: values, derivatives in every mode, bad input."""
