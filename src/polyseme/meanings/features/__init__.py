"""What tells the meanings of a word apart, as arrays: worked out by a model."""
