"""Encoders of Hugging Face (extra [hf]): subword tokens inside, vectors of whole words outside."""
