"""What a server refuses before any model is asked. Read by `polyseme serve --help`: no torch."""

from pydantic import Field

from polyseme.config import Settings


class LimitsConfig(Settings):
    """What one request may ask, and how many may wait."""

    max_body_bytes: int = Field(2 << 20, ge=1)
    """Bytes of a request's body."""
    max_inputs: int = Field(32, ge=1)
    """Texts in a request."""
    max_words: int = Field(1 << 14, ge=1)
    """Words in a request."""
    max_word_characters: int = Field(1_000, ge=1)
    """Characters of a word; of those it reads, the model has its own limit."""
    max_batch_characters: int = Field(1 << 15, ge=1)
    """Characters of the requests that are read together; a longer one is read alone."""
    max_queue: int = Field(1_024, ge=1)
    """Requests that wait at most."""
    max_wait: float = Field(0.5, gt=0)
    """Seconds that a request may have to wait for others, by estimate; beyond, it is refused with
    status 429."""
    timeout: float = Field(30.0, gt=0)
    """Seconds after which a request fails with status 504, and within which its body must come."""
