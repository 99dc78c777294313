"""Programs about checkpoints: parts of a graph that are run again."""
