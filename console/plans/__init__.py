"""Plans in the console: what somebody asks for in a form or an address, and what is answered."""
