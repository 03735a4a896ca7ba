"""Sessions of the pi and droid agents."""
