"""Users, roles and tokens, and the first admin of an installation."""
