"""Uses that belong together: grouped, named, placed on a map, written for other tools."""
