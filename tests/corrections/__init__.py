"""Programs with a mistake, and what they are when the advice that is printed is followed."""
