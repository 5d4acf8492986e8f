"""The API for programs: everything that the pages can do, under ``/api/v1``."""
