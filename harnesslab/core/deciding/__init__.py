"""Whether a candidate is promoted: criteria (`promotion`), secondary rewards, and every reason in words."""
