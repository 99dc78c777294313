"""The programs are started by mpiexec, and are not imported by pytest to look for examples."""

collect_ignore = ["programs"]
