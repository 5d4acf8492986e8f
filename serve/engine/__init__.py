"""The engine loop: page pool, scheduler, sampling, text. It knows no model; a runtime runs batches for it."""
