"""Whether words mean something else in one set of texts than in another."""
