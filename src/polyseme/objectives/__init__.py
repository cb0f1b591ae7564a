"""AXIS 2: what pretraining predicts. Batches become targets; encoded batches, losses."""
