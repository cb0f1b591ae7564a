"""Look at vectors on disk.

Examples:

  polyseme vectors info vectors/en
"""
