"""Programs about data sets and loaders."""
