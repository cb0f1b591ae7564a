"""AXIS 2: what pretraining predicts. Batches become questions; encoded batches, losses."""
