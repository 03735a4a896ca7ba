"""Panels as folders: read, and written so that reading them gives the same digest."""
