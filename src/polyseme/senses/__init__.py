"""How words are used in a corpus: their uses, in lines to read, in groups and over time.

query           what is looked for: forms, patterns, terms; which sentences count
uses            a corpus and a query -> every use of a word
concordance     uses -> lines to read, sorted and sampled
frequencies     uses -> how often in each period, how evenly over documents
export          uses -> CSV, TSV and spreadsheets
"""
