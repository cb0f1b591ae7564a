"""Word vectors, predictions and senses over HTTP: an engine, a queue in front of it, and routes."""
