"""Files in, a corpus out: documents, sentences, words, Parquet shards, a vocabulary. No torch.

sources        what the user pointed at: files, folders, globs
plan           which bytes become which shard
formats/       readers: bytes -> records (lines, tables, marked words, markup, Parquet, PDF)
segmenters/    text -> words with their offsets
preprocessing  raw text -> sentences with offsets: normalized, in words, in sentences
shards         sentences -> Parquet; their words as numbers, mapped, to be searched
prepare        all of the above for one shard: the function the executors run
word_counts    shards -> words and counts
corpus         the finished folder, for everyone who reads it
"""
