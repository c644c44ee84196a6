"""Commands of `zerolayer` that are long enough to stand alone."""
