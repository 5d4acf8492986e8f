"""Reading a model: its dimensions, its tensors by header, and where it comes from."""
