"""How a task uses a model: static, frozen or fine-tuned, and where it is inserted."""
