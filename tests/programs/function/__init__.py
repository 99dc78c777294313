"""Programs about `Function`, and about gradients of gradients."""
