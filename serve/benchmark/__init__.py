"""Speed: measured over any OpenAI-compatible endpoint or the bare engine loop, written down, compared."""
