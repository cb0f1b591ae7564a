"""The uses of many words with their features on disk, made once and read many times."""
