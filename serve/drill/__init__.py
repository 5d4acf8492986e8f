"""The drill: faults put into a running engine on purpose, to show that the page check finds each one it can."""
