"""Programs about what tests: `assert_close`."""
