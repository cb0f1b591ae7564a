"""What people decide: edits of groups, labels of uses, judged pairs; and what follows from it."""
