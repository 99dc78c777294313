"""Programs about modules and parameters."""
