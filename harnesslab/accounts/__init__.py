"""Who may do what: users with a role, and API tokens of which only the hash is kept."""
