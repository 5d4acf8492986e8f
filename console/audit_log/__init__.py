"""The audit log as it is read. It is written by :mod:`roundhouse.console.access.audit`."""
