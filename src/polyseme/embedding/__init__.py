"""Words in, vectors out: the embedder, bulk embedding, the store on disk."""
