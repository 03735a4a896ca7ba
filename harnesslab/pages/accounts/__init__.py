"""The login page, one's own account, and the list of users."""
