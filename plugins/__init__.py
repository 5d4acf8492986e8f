"""The page-tag guard and other native code. Knows tags and tables, never models, checkpoints, Triton or the web."""
