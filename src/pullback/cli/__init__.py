"""The command `pullback`: one file for each larger subcommand."""
