"""A language model and a corpus as something the training loop can train, measure and plan."""
