"""The layers of networks, by torch's names: a file for each family. All are in `pullback.nn`."""
