"""How a loop is run: as compiled C, or as NumPy in blocks."""
