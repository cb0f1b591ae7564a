"""Vectors in, labels out: tagging, classification, pairs of sentences."""
