"""One small detached process for each deployment: it outlives the worker that started it, and the console."""
