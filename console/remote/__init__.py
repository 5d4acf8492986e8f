"""The command line for a console on another machine: `roundhouse --server URL …`."""
