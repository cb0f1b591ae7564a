"""What we ship besides our own code: which packages, from which files, with which known holes."""
