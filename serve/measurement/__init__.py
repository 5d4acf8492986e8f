"""What a benchmark and an evaluation have in common: whom they ask, what that runs on, and who watches."""
