"""Recipe to engine: plan, calibrate, quantize, verify, compile."""
