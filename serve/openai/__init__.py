"""The OpenAI-compatible front: HTTP in OpenAI's form on one side, Triton over gRPC on the other."""
