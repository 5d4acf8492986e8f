"""Workers: processes that take jobs, run each in a child of its own, and tell what becomes of it."""
