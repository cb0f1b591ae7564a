"""A map of uses to look at, point at and choose from: the same module in a page and a notebook."""
