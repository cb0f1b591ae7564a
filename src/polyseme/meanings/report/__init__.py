"""Pages to keep and to pass on: one HTML file each, without scripts, that works offline."""
