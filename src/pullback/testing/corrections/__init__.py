"""What an audit found: where in the user's source, and the correction, which is tried before it is shown as code."""
