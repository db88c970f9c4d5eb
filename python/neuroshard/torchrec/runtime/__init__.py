"""TorchRec's runtime, measured, and its costs in the planner's price."""
