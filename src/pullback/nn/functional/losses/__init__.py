"""Losses, in files by the kind of their target."""
