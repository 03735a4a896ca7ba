"""Two stored rollouts compared: the whole result, its aligned rows, its strip, and answers token by token."""
