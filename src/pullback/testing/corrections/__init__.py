"""Corrections as code: how they are made from the user's source, and how one is tried before it is shown."""
