"""Programs about `autograd.forward_ad`."""
