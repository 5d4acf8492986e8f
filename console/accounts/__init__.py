"""Accounts, their logins and tokens, as pages and the API show and change them."""
