"""Reruns: what one would cost (`previews`), what a worker needs (`orders`), what came of it; regression cases."""
