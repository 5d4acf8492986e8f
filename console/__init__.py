"""The web console. Empty so far: it comes after the engine loop and the guard are complete."""
