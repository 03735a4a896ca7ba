"""What belongs to a project: its binding to a harness, panels, memos, its mirror."""
