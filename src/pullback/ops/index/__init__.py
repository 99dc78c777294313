"""Elements at positions: read, gathered, replaced, added to."""
