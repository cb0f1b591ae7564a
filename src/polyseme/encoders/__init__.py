"""AXIS 1: tensors in, every layer's vectors out. Inputs give layer 0; context the rest."""
