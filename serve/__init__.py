"""Engine to tokens: the engine loop, its process, Triton and the OpenAI-compatible front."""
