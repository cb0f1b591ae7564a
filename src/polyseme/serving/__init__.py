"""Word vectors, predictions and senses over HTTP: an engine, a queue in front of it, and routes.

Here is what a server refuses before any model is asked. `polyseme serve --help` reads it, so
importing it loads neither torch nor a web framework.
"""

from pydantic import Field

from polyseme.config import Settings


class LimitsConfig(Settings):
    """What one request may ask, and how many may wait."""

    max_body_bytes: int = Field(2 << 20, ge=1)
    """Maximum bytes in a request's body."""
    max_inputs: int = Field(32, ge=1)
    """Maximum texts in a request."""
    max_words: int = Field(1 << 14, ge=1)
    """Maximum words in a request."""
    max_word_characters: int = Field(1_000, ge=1)
    """Maximum characters in a word; the model may read fewer of them."""
    max_batch_characters: int = Field(1 << 15, ge=1)
    """Maximum characters of requests batched together; a longer request is read alone."""
    max_queue: int = Field(1_024, ge=1)
    """Maximum requests in the queue."""
    max_wait: float = Field(0.5, gt=0)
    """Maximum estimated seconds in the queue; if it would take longer, a request is refused with
    status 429."""
    timeout: float = Field(30.0, gt=0)
    """Seconds after which a request fails with status 504; its body must arrive by then, too."""
