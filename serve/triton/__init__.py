"""Everything that knows Triton: finding a server, writing its model repository, the backend that runs inside it."""
