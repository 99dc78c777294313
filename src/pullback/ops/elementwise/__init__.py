"""Operations that act on each element alone: arithmetic, analysis, comparisons, special functions."""
