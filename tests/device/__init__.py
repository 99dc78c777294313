"""An array on a device that is not there: what computes on it, and what is refused."""
