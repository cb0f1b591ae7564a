"""A word's uses on local pages: read, seen on a map, judged, compared, scored, exported."""
