"""What the workers do when the bell rings: one module a noun."""
