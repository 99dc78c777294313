"""Which operations a payload class, or an interpreter of this package, carries; and the page that says so."""
