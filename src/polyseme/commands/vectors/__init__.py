"""Inspect vectors on disk.

Examples:

  polyseme vectors info vectors/en
"""
