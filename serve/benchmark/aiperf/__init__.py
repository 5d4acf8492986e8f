"""aiperf, which makes load over HTTP: found or installed in an environment of its own, configured, run and read."""
