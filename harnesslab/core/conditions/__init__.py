"""Under which conditions it ran.

`fields` lists the conditions, `manifest` states them, `identity` says which must be equal for two experiments to
measure the same.
"""
