"""Lists of words with figures: collocates, keywords, n-grams."""
