"""Deployments: asked for, watched, listed, and how to talk to them."""
