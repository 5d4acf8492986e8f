"""The engine process: the one that loads weights and steps the loop, and the client that owns it.

It stands apart from Triton's Python stub so that a crash, the GIL, NumPy pins and (later) MPI ranks
stay out of the server.
"""
