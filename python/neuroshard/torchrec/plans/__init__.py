"""Plans that last: in files, loaded again, as what a new plan keeps, and across checkpoints."""
