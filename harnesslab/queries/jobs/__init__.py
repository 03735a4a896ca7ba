"""Jobs as read models, and the names of their groups."""
