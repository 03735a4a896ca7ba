"""The projects home and what belongs to a project: binding, panels, memo, story."""
