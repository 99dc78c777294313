"""The layers of networks, under torch's names: a file for each family. All are in `pullback.nn`."""
