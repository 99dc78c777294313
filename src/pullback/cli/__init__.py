"""The command `pullback`: a file for each subcommand that needs one."""
